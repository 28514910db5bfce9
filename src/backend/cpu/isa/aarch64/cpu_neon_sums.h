// Sums of products along rows of weights, by NEON: of f32, f16 and bf16, and of bf16 pairs by
// BFDOT. Only processors with FEAT_BF16 may run the BFDOT functions.
#pragma once

#if defined(__aarch64__)

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa/aarch64/cpu_neon.h"
#include "backend/cpu/isa/common/cpu_code_kernels.h"

// The target is given function by function, so that other processors never run its code.
#define FP8KV_NEON_BF16 [[gnu::target("arch=armv8.2-a+bf16")]]

namespace fp8kv::neon {

template <int Rows>
using SumTable = Floats[kDotWeights][Rows];

// Sums of kDotWeights rows of weights with `Rows` rows of x, which are floats.
template <typename T, int Rows>
struct Sums {
  using Element = T;
  static constexpr int kRows = Rows;
  static constexpr int64_t kStep = kLanes;

  // The row from column k on.
  static const float* at(const float* row, int64_t k) { return row + k; }
  static float value(const float* row, int64_t k) { return row[k]; }

  // Adds the products of `count` columns, whole steps.
  void add(const std::byte* const* weights, const float* x, int64_t x_stride, int64_t count) {
    if constexpr (Rows <= 2) {
      add_with<0, kDotWeights>(weights, x, x_stride, count);
    } else {
      add_with<0, 2>(weights, x, x_stride, count);
      add_with<2, 2>(weights, x, x_stride, count);
    }
  }

  SumTable<Rows> of = {};

 private:
  // Adds products with weights [First, First + Count): few enough that the sums stay in registers.
  template <int First, int Count>
  void add_with(const std::byte* const* weights, const float* x, int64_t x_stride, int64_t count) {
    Floats sum[Count][Rows];
#pragma GCC unroll 4
    for (int w = 0; w < Count; ++w) {
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) sum[w][r] = of[First + w][r];
    }
    for (int64_t k = 0; k < count; k += kStep) {
#pragma GCC unroll 4
      for (int w = 0; w < Count; ++w) {
        const Floats weight = Vector<T>::load(weights[First + w] + k * T::kBytes);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          sum[w][r] = add_product(sum[w][r], weight, floats_at(x + r * x_stride + k));
        }
      }
    }
#pragma GCC unroll 4
    for (int w = 0; w < Count; ++w) {
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) of[First + w][r] = sum[w][r];
    }
  }
};

// Sums of bf16 weights and x of bf16 pairs, two to a float.
template <int Rows>
struct PairSums {
  using Element = Bf16Element;
  static constexpr int kRows = Rows;
  static constexpr int64_t kStep = 2 * kLanes;

  static const float* at(const float* row, int64_t k) { return row + k / 2; }
  static float value(const float* row, int64_t k) {
    return Bf16Element::load(reinterpret_cast<const std::byte*>(row) + 2 * k);
  }

  void add(const std::byte* const* weights, const float* x, int64_t x_stride, int64_t count) {
    if constexpr (Rows <= 2) {
      add_with<0, kDotWeights>(weights, x, x_stride, count);
    } else {
      add_with<0, 2>(weights, x, x_stride, count);
      add_with<2, 2>(weights, x, x_stride, count);
    }
  }

  SumTable<Rows> of = {};

 private:
  template <int First, int Count>
  FP8KV_NEON_BF16 void add_with(const std::byte* const* weights, const float* x, int64_t x_stride,
                                int64_t count) {
    Floats sum[Count][Rows];
#pragma GCC unroll 4
    for (int w = 0; w < Count; ++w) {
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) sum[w][r] = of[First + w][r];
    }
    for (int64_t k = 0; k < count; k += kStep) {
#pragma GCC unroll 4
      for (int w = 0; w < Count; ++w) {
        const std::byte* from = weights[First + w] + 2 * k;
        const bfloat16x8_t low = vreinterpretq_bf16_u16(words_at(from));
        const bfloat16x8_t high = vreinterpretq_bf16_u16(words_at(from + 16));
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          const Floats pairs = floats_at(x + r * x_stride + k / 2);
          Floats& to = sum[w][r];
          to.low = vbfdotq_f32(to.low, low, vreinterpretq_bf16_f32(pairs.low));
          to.high = vbfdotq_f32(to.high, high, vreinterpretq_bf16_f32(pairs.high));
        }
      }
    }
#pragma GCC unroll 4
    for (int w = 0; w < Count; ++w) {
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) of[First + w][r] = sum[w][r];
    }
  }
};

}  // namespace fp8kv::neon

#endif
