// Moves rows of matrices into panels for products. For files of AVX-512 kernels alone; see
// cpu_avx512.h.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/isa/common/cpu_loops.h"
#include "backend/cpu/isa/x86/cpu_avx512_elements.h"

namespace fp8kv::avx512 {

// Every element of the words of one column group, `kStrip` apart.
template <typename Element, int Part = 0>
FP8KV_AVX512 [[gnu::always_inline]] inline void store_parts(__m512 words, float* to) {
  _mm512_store_ps(to + Part * kStrip, Vector<Element>::template part<Part>(words));
  if constexpr (Part + 1 < 4 / Element::kBytes) store_parts<Element, Part + 1>(words, to);
}

// Transposes rows as 32-bit words and splits the words afterwards: a narrow type costs that many
// times fewer shuffles.
template <typename Element>
FP8KV_AVX512 void pack_panel(const std::byte* const* rows, int depth, float* panel) {
  constexpr int kStep = kLanes * 4 / Element::kBytes;
  const int whole = depth / kStep * kStep;
  for (int half = 0; half < kStrip; half += kLanes) {
    for (int k = 0; k < whole; k += kStep) {
      __m512 x[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        x[i] = _mm512_loadu_ps(rows[half + i] + k * Element::kBytes);
      }
      transpose(x);
      float* to = panel + k * kStrip + half;
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        store_parts<Element>(x[i], to + i * (kStep / kLanes) * kStrip);
      }
    }
  }
  for (int k = whole; k < depth; ++k) {
    for (int j = 0; j < kStrip; ++j) {
      panel[k * kStrip + j] = Element::load(rows[j] + k * Element::kBytes);
    }
  }
}

template <typename Element>
FP8KV_AVX512 void copy_panel(const std::byte* const* rows, int n_rows, int columns, float* panel) {
  if (columns == kStrip) {
    for (int r = 0; r < n_rows; ++r) {
      _mm512_store_ps(panel + r * kStrip, Vector<Element>::load(rows[r]));
      _mm512_store_ps(panel + r * kStrip + kLanes,
                      Vector<Element>::load(rows[r] + kLanes * Element::kBytes));
    }
    return;
  }
  for (int r = 0; r < n_rows; ++r) {
    loops::copy_row<Element>(rows[r], columns, kStrip, panel + r * kStrip);
  }
}

// Two bf16 side by side move as one f32 would.
FP8KV_AVX512 void pack_pairs(const std::byte* const* rows, int depth, float* panel) {
  pack_panel<F32Element>(rows, depth / 2, panel);
  if (depth % 2 == 0) return;
  const int last = depth / 2;
  for (int j = 0; j < kStrip; ++j) {
    uint16_t code;
    std::memcpy(&code, rows[j] + last * 4, sizeof code);
    panel[last * kStrip + j] = float_from_bits(code);
  }
}

}  // namespace fp8kv::avx512

#endif
