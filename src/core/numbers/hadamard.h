// The randomised Hadamard transform of int4_per_token_head. It multiplies by signs, then by the
// Walsh-Hadamard matrix without a factor, in blocks of the largest power of two that divides the
// row. The forward and the inverse transform together multiply a row by hadamard_block(dim).
// Source: vLLM 0.33 v1/attention/ops/int4_per_token_head.py (single_rht).
#pragma once

#include <cstdint>

#include "core/numbers/hd.h"

namespace fp8kv {

inline constexpr int32_t kMostHadamardBlock = 512;

FP8KV_HD constexpr int32_t hadamard_block(int32_t dim) {
  return dim & -dim;
}

// The signs of 32 elements, as bits. This is a switch because GPUs would keep an array in local
// memory.
FP8KV_HD constexpr uint32_t hadamard_signs(int32_t word) {
  switch (word) {
    case 0:
      return 0x6573590Du;
    case 1:
      return 0x808035B1u;
    case 2:
      return 0xA6443D6Cu;
    case 3:
      return 0x6B7F5438u;
    case 4:
      return 0x4AA48B81u;
    case 5:
      return 0xABAFC441u;
    case 6:
      return 0x320B9848u;
    case 7:
      return 0xFA2043A0u;
    case 8:
      return 0x4D6E1C33u;
    case 9:
      return 0xA8A9C7CBu;
    case 10:
      return 0x1B951DDAu;
    case 11:
      return 0x9803B359u;
    case 12:
      return 0x3038796Eu;
    case 13:
      return 0xCD26200Eu;
    case 14:
      return 0xC9A02476u;
    default:
      return 0x8A9DACB9u;
  }
}

// The sign of element i of a block: +1 if its bit is set. Torch draws it with bernoulli from
// MT19937 seeded with 0x9E3779B9: +1 where bit 23 of the i-th number is clear.
// REQUIRES 0 <= i < kMostHadamardBlock.
FP8KV_HD constexpr float hadamard_sign(int32_t i) {
  return (hadamard_signs(i / 32) >> (i % 32) & 1u) != 0 ? 1.0f : -1.0f;
}

// The first element of butterfly number `pair` of a stage; the second lies `step` behind it.
FP8KV_HD constexpr int32_t hadamard_first(int32_t pair, int32_t step) {
  return pair / step * 2 * step + pair % step;
}

// The whole transform, in place. REQUIRES hadamard_block(dim) <= kMostHadamardBlock.
inline void hadamard(float* x, int32_t dim, bool inverse) {
  const int32_t block = hadamard_block(dim);
  const auto signs = [&] {
    for (int32_t i = 0; i < dim; ++i) x[i] *= hadamard_sign(i % block);
  };
  if (!inverse) signs();
  for (int32_t step = 1; step < block; step *= 2) {
    for (int32_t pair = 0; pair < dim / 2; ++pair) {
      const int32_t first = hadamard_first(pair, step);
      const float a = x[first], b = x[first + step];
      x[first] = a + b;
      x[first + step] = a - b;
    }
  }
  if (inverse) signs();
}

}  // namespace fp8kv
