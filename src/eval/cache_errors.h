// What storing values in a cache does to them, value by value, in double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "eval/eval_report.h"

namespace fp8kv {

// Sums over values that went into a cache.
struct ErrorSums {
  double squared_error = 0;
  double squared = 0;
  uint64_t values = 0;
  uint64_t saturated = 0;
  uint64_t subnormal = 0;
  uint64_t zero = 0;
  uint64_t nonfinite_unclamped = 0;

  void add(const ErrorSums& other);
  double relative_error() const;  // 0 where every value is 0
};

// Counts finite values `x` as a cache of `dtype` (FP8, f16, bf16 or f32) holds them with `scale`,
// which is for FP8 alone. Reading back gives code * scale.
// - saturated: |x| > largest * scale, by more than rounding an amax / largest to f32 explains
//   (2^-22 of it), so that a scale made from the values themselves never saturates.
// - nonfinite_unclamped: |x / scale| rounds to more than the largest, which conversions without
//   clamping turn into NaN or infinity: above 464 in E4M3FN, from 248 in E4M3FNUZ, from 61440 in
//   both E5M2 (ties go to even).
// - subnormal: kept, in a code below the smallest normal.
// - zero: x is not 0, its code is.
void add_errors(DType dtype, float scale, std::span<const float> x, ErrorSums& sums);

// True when reading back gives the same from both caches for every x, and from the codes alone up
// to one power of two: then attention gives the same too.
bool reads_back_equal(DType dtype_a, float scale_a, DType dtype_b, float scale_b,
                      std::span<const float> x);

// `heads` are the sums of one tensor's KV heads, in order.
CacheErrors cache_errors(const std::vector<ErrorSums>& heads);

}  // namespace fp8kv
