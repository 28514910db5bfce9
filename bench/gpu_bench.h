// Shared helpers of the GPU benchmark: random tensors, steps and caches on a backend, and the time
// of a call.
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
  double tenth, ninth;  // a tenth of the samples is below `tenth`, and a tenth above `ninth`
};

// Times `call(i)`, which enqueues the i-th run. Median of 50 samples, each as many calls as take 2
// ms.
Timing time_calls(const Bench& bench, const std::function<void(size_t)>& call);

// `amount` per call: bytes, or operations if the unit is TFLOP/s. `limit`: the same per second, or
// 0 if it is unknown.
void print_row(const std::string& name, const Timing& timing, double amount, const char* unit,
               double limit, const char* limit_name);

// Repeats one block of random values: small, finite ones in every type.
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
  int64_t first;  // in the pool
  int64_t count;
};

// Makes sequences of these lengths; the step has the last `rows` tokens of each, or all for 0.
// Takes pages from `pages` in a random order, as in a cache that has been in use.
Step make_step(const Bench& bench, const std::vector<int32_t>& lengths, int32_t rows,
               const Pages& pages);

int64_t pages_of(const std::vector<int32_t>& lengths);

struct Heads {
  int64_t q;
  int32_t kv;
  int32_t dim;
  int32_t latent = 0;  // elements of V, which is the end of K; 0: V is apart

  int32_t v_dim() const { return latent > 0 ? latent : dim; }
  // Elements of a token in the cache, for each KV head.
  int32_t stored() const { return latent > 0 ? dim : 2 * dim; }
};

// A cache of one layer with random contents.
struct Pool {
  Tensor k, v, scale;
  PagedKv kv;
  Pool(const Bench& bench, DType dtype, const Heads& heads, int64_t pages);
};

// Prints the rows of bench_gpu_linear.cpp. Returns the FLOP/s that products of many rows reach.
double bench_linear(const Bench& bench, const std::string& device);

// Prints the rows of bench_gpu_fused.cpp.
void bench_fused(const Bench& bench);

}  // namespace fp8kv::bench
