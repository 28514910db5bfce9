// The measured limits of this machine, to compare kernels with.
#pragma once

#include <chrono>

#include "backend/cpu/cpu_backend.h"
#include "base/machine/thread_pool.h"

namespace fp8kv::bench {

// The shortest run of `work` within about `seconds`, after one run to warm up.
template <typename Work>
double best_time(double seconds, const Work& work) {
  using Clock = std::chrono::steady_clock;
  work();
  double best = 1e30;
  const auto begin = Clock::now();
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  do {
    const auto start = Clock::now();
    work();
    const double time = since(start);
    if (time < best) best = time;
  } while (since(begin) < seconds);
  return best;
}

// FLOP/s of one core that does nothing but multiply and add in registers.
double peak_f32(CpuIsa isa);
// FLOP/s for products of bf16, if the processor has them; else those of f32.
double peak_bf16(CpuIsa isa);
// FLOP/s for products of f16 weights.
double peak_f16(CpuIsa isa);

// Bytes/s of all threads of the pool, for memory that is in no cache.
double read_bandwidth(ThreadPool& pool);

}  // namespace fp8kv::bench
