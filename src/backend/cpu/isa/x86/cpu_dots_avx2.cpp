// Products of few rows along the weights, by AVX2.
#if defined(__x86_64__)

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/isa/x86/cpu_avx2.h"

namespace fp8kv {
namespace {

using avx2::kLanes;
using avx2::Vector;

// Products with weights [First, First + Count) of kDotWeights: few enough that the sums stay in
// registers.
template <typename Element, int Rows, int First, int Count>
FP8KV_AVX2 void dots_with(const std::byte* const* weights, const float* x, int64_t x_stride,
                          int64_t count, float* out) {
  __m256 sum[Count][Rows];
#pragma GCC unroll 4
  for (int w = 0; w < Count; ++w) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) sum[w][r] = _mm256_setzero_ps();
  }
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t k = 0; k < whole; k += kLanes) {
#pragma GCC unroll 4
    for (int w = 0; w < Count; ++w) {
      const __m256 weight = Vector<Element>::load(weights[First + w] + k * Element::kBytes);
      fetch_line_ahead(weights[First + w], k * Element::kBytes, count * Element::kBytes);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        sum[w][r] = _mm256_fmadd_ps(weight, _mm256_loadu_ps(x + r * x_stride + k), sum[w][r]);
      }
    }
  }
  for (int w = 0; w < Count; ++w) {
    for (int r = 0; r < Rows; ++r) {
      float total = avx2::sum_of(sum[w][r]);
      for (int64_t k = whole; k < count; ++k) {
        total += Element::load(weights[First + w] + k * Element::kBytes) * x[r * x_stride + k];
      }
      out[r * kDotWeights + First + w] = total;
    }
  }
}

template <typename Element, int Rows>
FP8KV_AVX2 void dots(const std::byte* const* weights, const float* x, int64_t x_stride,
                     int64_t count, float* out) {
  if constexpr (Rows <= 2) {
    dots_with<Element, Rows, 0, kDotWeights>(weights, x, x_stride, count, out);
  } else {
    dots_with<Element, Rows, 0, 2>(weights, x, x_stride, count, out);
    dots_with<Element, Rows, 2, 2>(weights, x, x_stride, count, out);
  }
}

}  // namespace

const CpuKernels::Dots kAvx2F32Dots[kMaxDotRows] = {dots<F32Element, 1>, dots<F32Element, 2>,
                                                    dots<F32Element, 3>, dots<F32Element, 4>};
const CpuKernels::Dots kAvx2F16Dots[kMaxDotRows] = {dots<F16Element, 1>, dots<F16Element, 2>,
                                                    dots<F16Element, 3>, dots<F16Element, 4>};
const CpuKernels::Dots kAvx2Bf16Dots[kMaxDotRows] = {dots<Bf16Element, 1>, dots<Bf16Element, 2>,
                                                     dots<Bf16Element, 3>, dots<Bf16Element, 4>};

}  // namespace fp8kv

#endif
