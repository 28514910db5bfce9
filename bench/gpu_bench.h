// What every row of the GPU benchmark is made with: random tensors, steps and caches on a backend,
// and the time of a call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "gpu_limits.h"

namespace fp8kv::bench {

struct Bench {
  Backend& backend;
  GpuLimits limits;
  bool quick;
  double gemm = 0;  // FLOP/s of the backend's own products of many rows
};

struct Timing {
  double median;        // seconds a call
  double tenth, ninth;  // what a tenth of the samples stay below, and above
};

// `call(i)` enqueues the i-th run. The median of 50 samples, each of as many calls as take 2 ms.
Timing time_calls(const Bench& bench, const std::function<void(size_t)>& call);

// `amount` a call: bytes, or operations where the unit is TFLOP/s; `limit` in the same a second, or
// 0 where it is not known.
void print_row(const std::string& name, const Timing& timing, double amount, const char* unit,
               double limit, const char* limit_name);

// One block of random values over and over: small, finite ones in every type.
Tensor random_tensor(const Bench& bench, DType dtype, const Shape& shape);
Tensor put(const Bench& bench, DType dtype, const void* values, const Shape& shape);

constexpr int32_t kPage = 64;

struct Step {
  Tensor positions, slots, indptr, page_table, context_len;
  Batch batch() const {
    return {positions.view(), slots.view(), indptr.view(), page_table.view(), context_len.view()};
  }
};

struct Pages {
  int64_t first;  // of the pool
  int64_t count;
};

// Sequences of these lengths, of which the last `rows` tokens each are in the step (all of them for
// 0). Pages are taken from `pages` in a random order, as they lie in a cache that has been in use.
Step make_step(const Bench& bench, const std::vector<int32_t>& lengths, int32_t rows,
               const Pages& pages);

int64_t pages_of(const std::vector<int32_t>& lengths);

struct Heads {
  int64_t q;
  int32_t kv;
  int32_t dim;
};

// A cache of one layer with random contents.
struct Pool {
  Tensor k, v, scale;
  PagedKv kv;
  Pool(const Bench& bench, DType dtype, const Heads& heads, int64_t pages);
};

// The rows of bench_gpu_linear.cpp; the FLOP/s that products of many rows reach.
double bench_linear(const Bench& bench, const std::string& device);

// The rows of bench_gpu_fused.cpp.
void bench_fused(const Bench& bench);

}  // namespace fp8kv::bench
