// A fixed set of threads that share the jobs of one loop at a time. Any thread may get any job, so
// each job must write its own outputs only. Then results are the same for any number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace fp8kv {

// The error for a thread that the system refuses to start: number `which` of `wanted`, from 1.
Error cannot_start_thread(size_t which, size_t wanted, const std::system_error& why);

class ThreadPool {
 public:
  // `threads` counts the caller of `run`, so 1 starts no thread. Throws a resource Error if a
  // thread cannot be started. Fewer threads would work too, but the user asked for more and should
  // know.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls work(job, thread) once for every job in [0, n_jobs), in any order, with thread in [0,
  // threads()). Returns when all jobs are done. Rethrows the first exception of a job, and then
  // drops jobs that have not begun. Must not be called from a job or by two threads at once.
  template <typename Work>
  void run(int64_t n_jobs, const Work& work) {
    run_erased(n_jobs, &work, [](const void* context, int64_t job, int thread) {
      (*static_cast<const Work*>(context))(job, thread);
    });
  }

 private:
  using Call = void (*)(const void* context, int64_t job, int thread);

  void stop();
  void run_erased(int64_t n_jobs, const void* context, Call call);
  void worker(const std::stop_token& stop, int thread);
  bool run_one(int thread);
  void finish_job(const void* context, Call call, int64_t job, int thread);

  // The running loop. The upper half of the ticket is the number of the loop, the lower half its
  // next free job. A thread claims a job by adding one to the ticket that it read. This atomic step
  // fails if another loop has begun.
  std::atomic<uint64_t> ticket_;
  std::atomic<const void*> context_ = nullptr;
  std::atomic<Call> call_ = nullptr;
  std::atomic<uint32_t> n_jobs_ = 0;
  std::atomic<uint32_t> done_ = 0;
  std::atomic<uint32_t> wake_ = 0;

  std::atomic<bool> failed_ = false;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;

  std::vector<std::jthread> workers_;
};

}  // namespace fp8kv
