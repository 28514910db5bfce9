// Scores of few queries with fp8 keys: codes are transposed and looked up in registers, without a
// panel in between.
#if defined(__x86_64__)

#include <array>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/isa/x86/cpu_vbmi.h"

namespace fp8kv {
namespace {

using avx512::kLanes;
using avx512::kStrip;

constexpr int kHalves = kStrip / kLanes;
// Codes in a step, in words of four codes.
constexpr int kStep = 64, kInWord = 4, kWords = kStep / kInWord;

// Word i of 16 rows in vector i.
FP8KV_VBMI [[gnu::always_inline]] inline void load_words(const std::byte* const* rows, int first,
                                                         __m512i* words) {
  __m512 x[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) x[i] = _mm512_loadu_ps(rows[i] + first);
  avx512::transpose(x);
#pragma GCC unroll 16
  for (int i = 0; i < kWords; ++i) _mm512_store_si512(words + i, _mm512_castps_si512(x[i]));
}

template <Fp8Format F, int Rows>
FP8KV_VBMI void key_tile(const float* a, const std::byte* const* keys, int depth, float* c,
                         int64_t c_stride) {
  const vbmi::Tables tables = vbmi::load_tables<F>();
  __m512 sum[Rows][kHalves];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    for (int half = 0; half < kHalves; ++half) sum[r][half] = _mm512_setzero_ps();
  }
  for (int k = 0; k < depth; k += kStep) {
    __m512i words[kHalves][kWords];
    for (int half = 0; half < kHalves; ++half) load_words(keys + half * kLanes, k, words[half]);
    for (int i = 0; i < kWords; ++i) {
      const vbmi::Halves low = vbmi::look_up<F>(tables, words[0][i]);
      const vbmi::Halves high = vbmi::look_up<F>(tables, words[1][i]);
      const float* x = a + k + i * kInWord;
#pragma GCC unroll 4
      for (int part = 0; part < kInWord; ++part) {
        const __m512 first = vbmi::floats_at(low, vbmi::kParts[part]);
        const __m512 second = vbmi::floats_at(high, vbmi::kParts[part]);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) {
          const __m512 each = _mm512_set1_ps(x[r * kTileStride + part]);
          sum[r][0] = _mm512_fmadd_ps(each, first, sum[r][0]);
          sum[r][1] = _mm512_fmadd_ps(each, second, sum[r][1]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    for (int half = 0; half < kHalves; ++half) {
      _mm512_storeu_ps(c + r * c_stride + half * kLanes, sum[r][half]);
    }
  }
}

template <Fp8Format F>
constexpr std::array<CpuKernels::KeyTile, kMaxRowTiles> kKeyTiles = {
    key_tile<F, 1>, key_tile<F, 2>, key_tile<F, 3>, key_tile<F, 4>,
    key_tile<F, 5>, key_tile<F, 6>, key_tile<F, 7>, key_tile<F, 8>};

}  // namespace

void take_vbmi_key_tiles(CpuKernels& kernels) {
  kernels.key_tiles.e4m3fn = kKeyTiles<Fp8Format::e4m3fn>.data();
  kernels.key_tiles.e4m3fnuz = kKeyTiles<Fp8Format::e4m3fnuz>.data();
  kernels.key_tiles.e5m2 = kKeyTiles<Fp8Format::e5m2>.data();
  kernels.key_tiles.e5m2fnuz = kKeyTiles<Fp8Format::e5m2fnuz>.data();
}

}  // namespace fp8kv

#endif
