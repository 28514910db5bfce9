// Helpers for files of AVX-512 kernels alone: this header defines a target for their functions.
#pragma once

#if defined(__x86_64__)

// g++ 12 warns of the deliberately undefined operands inside its own intrinsics, as if the caller
// had made a mistake (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

// Functions with this target run only on processors that have these sets. The target is given
// function by function: compiling the whole file for it would leak AVX-512 code into inline library
// functions.
#define FP8KV_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]]

namespace fp8kv::avx512 {

inline constexpr int kLanes = 16;
inline constexpr int kStrip = 2 * kLanes;

// Transposes 16 x 16 values.
FP8KV_AVX512 [[gnu::always_inline]] inline void transpose(__m512 (&x)[16]) {
  __m512 y[16];
  // Pairs of rows, then fours: x[4g + i] has column 4b + i of rows 4g .. 4g + 3 in each 128 bits b.
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(y[i]), _mm512_castps_pd(y[i + 2])));
    x[i + 1] =
        _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(y[i]), _mm512_castps_pd(y[i + 2])));
    x[i + 2] = _mm512_castpd_ps(
        _mm512_unpacklo_pd(_mm512_castps_pd(y[i + 1]), _mm512_castps_pd(y[i + 3])));
    x[i + 3] = _mm512_castpd_ps(
        _mm512_unpackhi_pd(_mm512_castps_pd(y[i + 1]), _mm512_castps_pd(y[i + 3])));
  }
  // Then the 128-bit blocks, a 4 x 4 transpose for each i.
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    y[i] = _mm512_shuffle_f32x4(x[i], x[i + 4], 0x88);
    y[i + 4] = _mm512_shuffle_f32x4(x[i], x[i + 4], 0xDD);
    y[i + 8] = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0x88);
    y[i + 12] = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0xDD);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm512_shuffle_f32x4(y[i], y[i + 8], 0x88);
    x[i + 4] = _mm512_shuffle_f32x4(y[i + 4], y[i + 12], 0x88);
    x[i + 8] = _mm512_shuffle_f32x4(y[i], y[i + 8], 0xDD);
    x[i + 12] = _mm512_shuffle_f32x4(y[i + 4], y[i + 12], 0xDD);
  }
}

}  // namespace fp8kv::avx512

#endif
