// Products of few rows along the weights, by NEON.
#if defined(__aarch64__)

#include "backend/cpu/isa/aarch64/cpu_neon_sums.h"
#include "backend/cpu/isa/common/cpu_kernels.h"

namespace fp8kv {
namespace {

using neon::PairSums;
using neon::Sums;

template <typename SumsOfRows>
void dots(const std::byte* const* weights, const float* x, int64_t x_stride, int64_t count,
          float* out) {
  using Element = typename SumsOfRows::Element;
  const int64_t whole = count / SumsOfRows::kStep * SumsOfRows::kStep;
  SumsOfRows sums;
  sums.add(weights, x, x_stride, whole);
  for (int w = 0; w < kDotWeights; ++w) {
    for (int r = 0; r < SumsOfRows::kRows; ++r) {
      float total = neon::sum_of(sums.of[w][r]);
      for (int64_t k = whole; k < count; ++k) {
        total += Element::load(weights[w] + k * Element::kBytes) *
                 SumsOfRows::value(x + r * x_stride, k);
      }
      out[r * kDotWeights + w] = total;
    }
  }
}

}  // namespace

const CpuKernels::Dots kNeonF32Dots[kMaxDotRows] = {
    dots<Sums<F32Element, 1>>, dots<Sums<F32Element, 2>>, dots<Sums<F32Element, 3>>,
    dots<Sums<F32Element, 4>>};
const CpuKernels::Dots kNeonF16Dots[kMaxDotRows] = {
    dots<Sums<F16Element, 1>>, dots<Sums<F16Element, 2>>, dots<Sums<F16Element, 3>>,
    dots<Sums<F16Element, 4>>};
const CpuKernels::Dots kNeonBf16Dots[kMaxDotRows] = {
    dots<Sums<Bf16Element, 1>>, dots<Sums<Bf16Element, 2>>, dots<Sums<Bf16Element, 3>>,
    dots<Sums<Bf16Element, 4>>};
const CpuKernels::Dots kNeonPairDots[kMaxDotRows] = {dots<PairSums<1>>, dots<PairSums<2>>,
                                                     dots<PairSums<3>>, dots<PairSums<4>>};

}  // namespace fp8kv

#endif
