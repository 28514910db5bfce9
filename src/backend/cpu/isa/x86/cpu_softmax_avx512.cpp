// CpuKernels::Softmax by AVX-512: the largest part of a long prompt's attention besides the
// products.
#if defined(__x86_64__)

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/isa/common/cpu_loops.h"
#include "backend/cpu/isa/x86/cpu_avx512.h"

namespace fp8kv {
namespace {

using avx512::kLanes;

// loops::exp of 16 numbers with fused multiply-adds; 0 below -104, NaN for NaN.
FP8KV_AVX512 [[gnu::always_inline]] inline __m512 exp(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-120.0f), x);  // a NaN stays
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(0x1.715476p+0f)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e4p-1f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.7f7d1cp-20f), r);
  __m512 p = _mm512_set1_ps(1.0f / 5040);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 720));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
  p = _mm512_add_ps(p, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

// Lanes of the 16 scores from t on that are within [begin, end).
[[gnu::always_inline]] inline uint32_t lanes_within(int t, int begin, int end) {
  const auto below = [t](int n) {
    return n >= t + kLanes ? 0xFFFFu : n <= t ? 0u : (1u << (n - t)) - 1;
  };
  return below(end) & ~below(begin);
}

}  // namespace

FP8KV_AVX512 float softmax_avx512(float* scores, int begin, int end, int count, float scale,
                                  SoftmaxState& state) {
  const int padded = (count + kLanes - 1) / kLanes * kLanes;
  const __m512 factor = _mm512_set1_ps(scale);
  __m512 most = _mm512_set1_ps(state.max);
  for (int t = 0; t < padded; t += kLanes) {
    const auto within = static_cast<__mmask16>(lanes_within(t, begin, end));
    const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(scores + t), factor);
    most = _mm512_mask_max_ps(most, within, x, most);  // passes by a NaN
  }
  const float max = _mm512_reduce_max_ps(most);
  const __m512 largest = _mm512_set1_ps(max);
  __m512 sum = _mm512_setzero_ps();
  for (int t = 0; t < padded; t += kLanes) {
    const auto within = static_cast<__mmask16>(lanes_within(t, begin, end));
    const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(scores + t), factor);
    const __m512 p = _mm512_maskz_mov_ps(within, exp(_mm512_sub_ps(x, largest)));
    _mm512_storeu_ps(scores + t, p);
    sum = _mm512_add_ps(sum, p);
  }
  alignas(64) float lanes[kLanes];
  _mm512_store_ps(lanes, sum);
  const float correction = loops::exp(state.max - max);
  state.max = max;
  state.sum = state.sum * correction + loops::sum_of_lanes(lanes);
  return correction;
}

}  // namespace fp8kv

#endif
