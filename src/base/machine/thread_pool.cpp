#include "base/machine/thread_pool.h"

#include <chrono>
#include <utility>

namespace fp8kv {
namespace {

constexpr uint64_t kJobMask = 0xFFFFFFFFu;
// The job number of a closed loop, in which no job can be claimed.
constexpr uint64_t kClosed = kJobMask;

// How long to spin before sleeping. Ops of one forward pass follow each other within microseconds,
// while a sleep and a wake-up cost about fifty.
constexpr auto kSpinTime = std::chrono::microseconds(50);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls `ready` for kSpinTime. Returns whether it became true.
template <typename Ready>
bool spin_until(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

Error cannot_start_thread(size_t which, size_t wanted, const std::system_error& why) {
  return Error(
      cat("cannot start thread ", which, " of ", wanted, ": ", why.code().message()),
      "pass a smaller --threads N, or allow more processes or memory: ulimit -u, ulimit -v",
      ErrorKind::resource);
}

ThreadPool::ThreadPool(int threads) : ticket_(kClosed) {
  FP8KV_ASSERT(threads >= 1);
  workers_.reserve(static_cast<size_t>(threads) - 1);
  try {
    for (int thread = 1; thread < threads; ++thread) {
      workers_.emplace_back([this, thread](std::stop_token stop) { worker(stop, thread); });
    }
  } catch (const std::system_error& error) {
    stop();
    throw cannot_start_thread(workers_.size() + 2, static_cast<size_t>(threads), error);
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  for (std::jthread& each : workers_) each.request_stop();
  wake_.fetch_add(1);
  wake_.notify_all();
}

void ThreadPool::run_erased(int64_t n_jobs, const void* context, Call call) {
  FP8KV_ASSERT(n_jobs < static_cast<int64_t>(kClosed));
  if (workers_.empty() || n_jobs <= 1) {
    for (int64_t job = 0; job < n_jobs; ++job) call(context, job, 0);
    return;
  }
  // First publish a new loop number. A thread with a ticket of the last loop can then claim no job,
  // so nobody reads the fields while they change.
  const uint64_t loop = (ticket_.load() & ~kJobMask) + kJobMask + 1;
  ticket_.store(loop | kClosed);
  context_.store(context);
  call_.store(call);
  n_jobs_.store(static_cast<uint32_t>(n_jobs));
  done_.store(0);
  failed_.store(false);
  ticket_.store(loop);
  wake_.fetch_add(1);
  wake_.notify_all();

  while (run_one(0)) {
  }
  const auto finished = [&] { return done_.load() == static_cast<uint32_t>(n_jobs); };
  if (!spin_until(finished)) {
    for (uint32_t done = done_.load(); done != static_cast<uint32_t>(n_jobs); done = done_.load()) {
      done_.wait(done);
    }
  }
  if (failed_.load()) {
    const std::scoped_lock lock(failure_mutex_);
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

void ThreadPool::worker(const std::stop_token& stop, int thread) {
  while (true) {
    // Read `wake_` before looking for work: any later loop changes it and ends the wait.
    const uint32_t seen = wake_.load();
    if (stop.stop_requested()) return;
    if (run_one(thread)) continue;
    if (spin_until([&] { return wake_.load() != seen; })) continue;
    wake_.wait(seen);
  }
}

bool ThreadPool::run_one(int thread) {
  uint64_t ticket = ticket_.load();
  while (true) {
    const uint64_t job = ticket & kJobMask;
    if (job == kClosed || job >= n_jobs_.load()) return false;
    const void* context = context_.load();
    const Call call = call_.load();
    // Success means that the ticket, and with it the loop, has not changed since it was read.
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1)) continue;
    finish_job(context, call, static_cast<int64_t>(job), thread);
    return true;
  }
}

void ThreadPool::finish_job(const void* context, Call call, int64_t job, int thread) {
  if (!failed_.load()) {
    try {
      call(context, job, thread);
    } catch (...) {
      const std::scoped_lock lock(failure_mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_.store(true);
    }
  }
  if (done_.fetch_add(1) + 1 == n_jobs_.load()) done_.notify_one();
}

}  // namespace fp8kv
