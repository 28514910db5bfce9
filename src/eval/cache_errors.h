// The errors that storing values in a cache makes, value by value, in double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kv_format.h"
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

// Counts finite values `x` [row.dim] as a row of a cache holds them with the stored `scale`, which
// is for formats that have one. Reading back gives code * scale. Rotated formats are rotated back.
// - saturated: |x| is above largest * scale. Up to 2^-22 of that is allowed, the error of rounding
//   amax / largest to f32, so that a scale made from the values themselves never saturates.
// - nonfinite_unclamped: |x / scale| rounds to more than the format's largest number. A conversion
//   without clamping makes it NaN or infinity: above 464 in E4M3FN, from 248 in E4M3FNUZ, from
//   61440 in both E5M2 (ties go to even).
// - subnormal: stored as a subnormal code.
// - zero: x is not 0, but its code is.
// Formats that make scales of their own: saturated counts what lies beyond the largest value that
// the stored scale leaves to a block, and subnormal and nonfinite_unclamped count nothing.
void add_errors(const KvRow& row, float scale, std::span<const float> x, ErrorSums& sums);

// Counts elements of E4M3FN that are rounded towards zero, like add_errors.
void add_errors_toward_zero(float scale, std::span<const float> x, ErrorSums& sums);

// The errors of a part of a latent that fp8_ds_mla keeps: whole blocks.
void add_block_errors(std::span<const float> latent, ErrorSums& sums);

// Whether attention gives the same bits with either cache of elements, for these values. True when
// the scales differ by a power of two, and reading back (code * scale) gives the same number from
// both for every x.
bool reads_back_equal(DType dtype_a, float scale_a, DType dtype_b, float scale_b,
                      std::span<const float> x);

// `heads` are the sums of one tensor's KV heads, in order.
CacheErrors cache_errors(const std::vector<ErrorSums>& heads);

}  // namespace fp8kv
