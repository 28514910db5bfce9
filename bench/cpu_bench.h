// Shared helpers of the CPU backend's benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "roofline.h"

namespace fp8kv::bench {

inline constexpr double kSeconds = 0.7;
inline constexpr int32_t kPageSize = 64;  // see model/cache/kv_cache.h

struct Limits {
  double peak_f32;
  double peak_bf16;
  double peak_f16;
  double bandwidth;
  int threads;
};

void print_row(const std::string& name, double rate, const char* unit, double limit,
               const char* limit_name);

// Random bytes that are finite, small values in every type.
Tensor random_tensor(Backend& backend, DType dtype, const Shape& shape);
Tensor int_tensor(Backend& backend, const std::vector<int32_t>& values, const Shape& shape);

struct Sequences {
  Tensor positions, slots, indptr, page_table, context_len;
  Batch batch() const {
    return {positions.view(), slots.view(), indptr.view(), page_table.view(), context_len.view()};
  }
};

// `count` sequences of `context` tokens, the last `rows` of each in the step.
Sequences make_sequences(Backend& backend, int32_t count, int32_t context, int32_t rows);

// Prompts of latent attention with the heads of DeepSeek V2 Lite, in two ways of computing.
void bench_latent(Backend& backend, const Limits& limits);

}  // namespace fp8kv::bench
