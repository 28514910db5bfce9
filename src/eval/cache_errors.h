// The errors that a cache makes in the values it stores, measured value by value in double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cache/kv_format.h"
#include "eval/eval_report.h"

namespace fp8kv {

// Sums over the values that went into a cache.
struct ErrorSums {
  double squared_error = 0;
  double squared = 0;
  uint64_t values = 0;
  uint64_t saturated = 0;
  uint64_t subnormal = 0;
  uint64_t zero = 0;
  uint64_t nonfinite_unclamped = 0;

  void add(const ErrorSums& other);
  double relative_error() const;  // 0 if every value is 0
};

// Adds the errors of the finite values `x` [row.dim] stored as one row of a cache. `scale` is the
// stored scale, for formats that have one. Reading back gives code * scale. Rotated formats are
// rotated back.
// - saturated: |x| is above largest * scale. An excess of up to 2^-22 is allowed, the error of
//   rounding amax / largest to f32, so that a scale made from the values themselves never
//   saturates.
// - nonfinite_unclamped: |x / scale| rounds to more than the format's largest number. A conversion
//   without clamping makes it NaN or infinity: above 464 in E4M3FN, from 248 in E4M3FNUZ, from
//   61440 in both E5M2 (ties go to even).
// - subnormal: stored as a subnormal code.
// - zero: x is not 0, but its code is.
// For formats that make their own scales, saturated counts the values beyond the largest one that
// the stored scale allows in a block. subnormal and nonfinite_unclamped then count nothing.
void add_errors(const KvRow& row, float scale, std::span<const float> x, ErrorSums& sums);

// Like add_errors, for E4M3FN elements that are rounded towards zero.
void add_errors_toward_zero(float scale, std::span<const float> x, ErrorSums& sums);

// The errors of the part of a latent that fp8_ds_mla stores in FP8. REQUIRES whole blocks.
void add_block_errors(std::span<const float> latent, ErrorSums& sums);

// Whether attention gets the same bits from either cache of elements, for these values. True if the
// scales differ by a power of two, and code * scale is equal in both caches for every x.
bool reads_back_equal(DType dtype_a, float scale_a, DType dtype_b, float scale_b,
                      std::span<const float> x);

// `heads` are the sums of one tensor's KV heads, in order.
CacheErrors cache_errors(const std::vector<ErrorSums>& heads);

}  // namespace fp8kv
