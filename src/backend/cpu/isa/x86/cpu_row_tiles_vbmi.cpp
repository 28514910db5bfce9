// Products with rows that are read once, in their own order and without a panel: values of a cache
// for attention's sums.
#if defined(__x86_64__)

#include <array>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/isa/common/cpu_loops.h"
#include "backend/cpu/isa/x86/cpu_avx512_elements.h"
#include "backend/cpu/isa/x86/cpu_vbmi.h"

namespace fp8kv {
namespace {

using avx512::kLanes;
using avx512::kStrip;
using avx512::Vector;

// Elements of a row as vectors of floats.
template <typename Element>
struct Reader {
  template <int Vectors>
  FP8KV_VBMI [[gnu::always_inline]] inline void read(const std::byte* from,
                                                     __m512 (&to)[Vectors]) const {
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i) {
      to[i] = Vector<Element>::load(from + i * kLanes * Element::kBytes);
    }
  }
};

template <Fp8Format F>
struct Reader<Fp8Element<F>> {
  const vbmi::Tables tables;

  FP8KV_VBMI Reader() : tables(vbmi::load_tables<F>()) {}

  template <int Vectors>
  FP8KV_VBMI [[gnu::always_inline]] inline void read(const std::byte* from,
                                                     __m512 (&to)[Vectors]) const {
    static_assert(Vectors == 2 || Vectors == 4);
    __m512i codes;
    if constexpr (Vectors == 4) {
      codes = _mm512_loadu_si512(from);
    } else {
      codes = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    }
    const vbmi::Halves halves = vbmi::look_up<F>(tables, codes);
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i) to[i] = vbmi::floats_at(halves, vbmi::kQuarters[i]);
  }
};

// Rows that are fetched before they are read.
constexpr int kRowsAhead = 8;

template <typename Element, int Vectors>
[[gnu::always_inline]] inline void fetch(const std::byte* columns) {
  for (int i = 0; i < Vectors * kLanes * Element::kBytes; i += 64) __builtin_prefetch(columns + i);
}

// Vectors of columns at once: enough sums to hide the latency of an addition.
template <int Rows>
constexpr int kVectors = Rows <= 4 ? 4 : 2;

template <typename Element, int Rows, int Vectors>
FP8KV_VBMI [[gnu::always_inline]] inline void add_columns(const Reader<Element>& reader,
                                                          const float* a,
                                                          const std::byte* const* rows, int depth,
                                                          int64_t first, float* c,
                                                          int64_t c_stride) {
  __m512 sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i) sum[r][i] = _mm512_setzero_ps();
  }
  for (int k = 0; k < depth; ++k) {
    __m512 values[Vectors];
    fetch<Element, Vectors>(rows[k + kRowsAhead < depth ? k + kRowsAhead : k] +
                            first * Element::kBytes);
    reader.read(rows[k] + first * Element::kBytes, values);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const __m512 x = _mm512_set1_ps(a[r * kTileStride + k]);
#pragma GCC unroll 4
      for (int i = 0; i < Vectors; ++i) sum[r][i] = _mm512_fmadd_ps(x, values[i], sum[r][i]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    float* out = c + r * c_stride + first;
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i) {
      float* to = out + i * kLanes;
      _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), sum[r][i]));
    }
  }
}

template <typename Element, int Rows>
FP8KV_VBMI void row_tile(const float* a, const std::byte* const* rows, int depth, int64_t columns,
                         float* c, int64_t c_stride) {
  const Reader<Element> reader;
  constexpr int kWide = kVectors<Rows>;
  int64_t first = 0;
  for (; first + kWide * kLanes <= columns; first += kWide * kLanes) {
    add_columns<Element, Rows, kWide>(reader, a, rows, depth, first, c, c_stride);
  }
  if (first < columns) add_columns<Element, Rows, 2>(reader, a, rows, depth, first, c, c_stride);
}

template <typename Element>
constexpr std::array<CpuKernels::RowTile, kMaxRowTiles> kRowTiles = {
    row_tile<Element, 1>, row_tile<Element, 2>, row_tile<Element, 3>, row_tile<Element, 4>,
    row_tile<Element, 5>, row_tile<Element, 6>, row_tile<Element, 7>, row_tile<Element, 8>};

}  // namespace

void take_vbmi_row_tiles(CpuKernels& kernels) {
  kernels.row_tiles = per_type<const CpuKernels::RowTile*>(
      []<typename Element>() { return kRowTiles<Element>.data(); });
}

}  // namespace fp8kv

#endif
