// Panels of fp8 codes by AVX512_VBMI.
#if defined(__x86_64__)

#include <array>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/isa/common/cpu_loops.h"
#include "backend/cpu/isa/x86/cpu_vbmi.h"

namespace fp8kv {
namespace {

using avx512::kLanes;
using avx512::kStrip;
using vbmi::floats_at;
using vbmi::Halves;
using vbmi::kParts;
using vbmi::kQuarters;
using vbmi::load_tables;
using vbmi::look_up;
using vbmi::Tables;

template <Fp8Format F>
FP8KV_VBMI void pack_panel(const std::byte* const* rows, int depth, float* panel) {
  constexpr int kStep = 64;
  const Tables tables = load_tables<F>();
  const int whole = depth / kStep * kStep;
  for (int half = 0; half < kStrip; half += kLanes) {
    for (int k = 0; k < whole; k += kStep) {
      __m512 x[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) x[i] = _mm512_loadu_ps(rows[half + i] + k);
      avx512::transpose(x);  // in words of four codes
      float* to = panel + k * kStrip + half;
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        const Halves halves = look_up<F>(tables, _mm512_castps_si512(x[i]));
#pragma GCC unroll 4
        for (int part = 0; part < 4; ++part) {
          _mm512_store_ps(to + (4 * i + part) * kStrip, floats_at(halves, kParts[part]));
        }
      }
    }
  }
  for (int k = whole; k < depth; ++k) {
    for (int j = 0; j < kStrip; ++j) panel[k * kStrip + j] = Fp8Element<F>::load(rows[j] + k);
  }
}

// Two rows at a time.
template <Fp8Format F>
FP8KV_VBMI void copy_panel(const std::byte* const* rows, int n_rows, int columns, float* panel) {
  static_assert(kStrip == 32);
  if (columns < kStrip) {
    for (int r = 0; r < n_rows; ++r) {
      loops::copy_row<Fp8Element<F>>(rows[r], columns, kStrip, panel + r * kStrip);
    }
    return;
  }
  const Tables tables = load_tables<F>();
  for (int r = 0; r < n_rows; r += 2) {
    const bool pair = r + 1 < n_rows;
    const auto* first = reinterpret_cast<const __m256i*>(rows[r]);
    const auto* second = reinterpret_cast<const __m256i*>(rows[pair ? r + 1 : r]);
    const __m512i codes = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(first)),
                                             _mm256_loadu_si256(second), 1);
    const Halves halves = look_up<F>(tables, codes);
    const int quarters = pair ? 4 : 2;
    for (int quarter = 0; quarter < quarters; ++quarter) {
      _mm512_store_ps(panel + r * kStrip + quarter * kLanes, floats_at(halves, kQuarters[quarter]));
    }
  }
}

}  // namespace

void take_vbmi_panels(CpuKernels& kernels) {
  kernels.pack_panel.e4m3fn = pack_panel<Fp8Format::e4m3fn>;
  kernels.pack_panel.e4m3fnuz = pack_panel<Fp8Format::e4m3fnuz>;
  kernels.pack_panel.e5m2 = pack_panel<Fp8Format::e5m2>;
  kernels.pack_panel.e5m2fnuz = pack_panel<Fp8Format::e5m2fnuz>;
  kernels.copy_panel.e4m3fn = copy_panel<Fp8Format::e4m3fn>;
  kernels.copy_panel.e4m3fnuz = copy_panel<Fp8Format::e4m3fnuz>;
  kernels.copy_panel.e5m2 = copy_panel<Fp8Format::e5m2>;
  kernels.copy_panel.e5m2fnuz = copy_panel<Fp8Format::e5m2fnuz>;
}

}  // namespace fp8kv

#endif
