#include <atomic>
#include <chrono>
#include <fstream>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/machine/thread_pool.h"
#include "support/expect_error.h"
#include "support/sanitizers.h"

namespace fp8kv {
namespace {

// Sets the stack size of new threads while it exists.
class StackSize {
 public:
  explicit StackSize(size_t bytes) {
    pthread_getattr_default_np(&before_);
    pthread_attr_t wanted = before_;
    pthread_attr_setstacksize(&wanted, bytes);
    set_ = pthread_setattr_default_np(&wanted) == 0;
  }
  ~StackSize() { pthread_setattr_default_np(&before_); }
  StackSize(const StackSize&) = delete;
  StackSize& operator=(const StackSize&) = delete;
  bool set() const { return set_; }

 private:
  pthread_attr_t before_{};
  bool set_ = false;
};

// Limits the process's address space while it exists: `more` bytes beyond its current size.
class AddressLimit {
 public:
  explicit AddressLimit(size_t more) {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + more, before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("thread pool: threads that cannot be started are an error that says how many") {
  const StackSize too_large(size_t{1} << 47);  // the whole address space
  REQUIRE(too_large.set());
  CHECK(test::error_of([] { ThreadPool(3); }, ErrorKind::resource) ==
        "cannot start thread 2 of 3: Resource temporarily unavailable");
  CHECK(test::help_of([] { ThreadPool(3); }) ==
        "pass a smaller --threads N, or allow more processes or memory: ulimit -u, ulimit -v");
  CHECK(ThreadPool(1).threads() == 1);
}

TEST_CASE("thread pool: threads that were started end when one more cannot be") {
  if (test::kSanitized) return;  // sanitizers need more addresses than the limit allows
  const StackSize large(size_t{1} << 30);
  REQUIRE(large.set());
  for (int i = 0; i < 3; ++i) {  // earlier threads must have returned their stacks
    const AddressLimit limit((size_t{5} << 30) / 2);
    CHECK(test::error_of([] { ThreadPool(8); }, ErrorKind::resource) ==
          "cannot start thread 4 of 8: Resource temporarily unavailable");
  }
}

TEST_CASE("thread pool: does every job once, for any number of threads and jobs") {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (const int64_t n_jobs : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> counts(static_cast<size_t>(n_jobs));
      std::atomic<bool> thread_in_range = true;
      pool.run(n_jobs, [&](int64_t job, int thread) {
        counts[job].fetch_add(1);
        if (thread < 0 || thread >= threads) thread_in_range = false;
      });
      int64_t once = 0;
      for (const auto& count : counts) once += count == 1 ? 1 : 0;
      CHECK(once == n_jobs);
      CHECK(thread_in_range);
    }
  }
}

TEST_CASE("thread pool: what jobs wrote is there when run returns, loop after loop") {
  ThreadPool pool(4);
  std::vector<int64_t> values(64);
  int64_t wrong = 0;
  for (int64_t round = 0; round < 2000; ++round) {
    pool.run(64, [&](int64_t job, int /*thread*/) { values[job] = round + job; });
    for (int64_t job = 0; job < 64; ++job) wrong += values[job] == round + job ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("thread pool: wakes threads that have gone to sleep") {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    // Ends only if three threads have each taken a job.
    std::atomic<int> arrived = 0;
    pool.run(3, [&](int64_t, int) {
      arrived.fetch_add(1);
      while (arrived.load() < 3) std::this_thread::yield();
    });
    CHECK(arrived == 3);
  }
}

TEST_CASE("thread pool: throws what a job threw, and is of use afterwards") {
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    std::string message;
    try {
      pool.run(100, [](int64_t job, int) {
        if (job == 37) throw std::runtime_error("job 37");
      });
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    CHECK(message == "job 37");
    std::atomic<int> done = 0;
    pool.run(10, [&](int64_t, int) { done.fetch_add(1); });
    CHECK(done == 10);
  }
}

TEST_CASE("thread pool: ends while its threads are on their way to sleep") {
  for (int round = 0; round < 4000; ++round) {
    ThreadPool pool(4);
    // The caller may do both jobs and leave while the threads are still waking up.
    for (int loop = 0; loop < round % 4; ++loop) pool.run(2, [](int64_t, int) {});
  }
}

}  // namespace fp8kv
