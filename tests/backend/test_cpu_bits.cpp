// Checks which instruction sets give the same bits: see docs/performance.md.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "support/backends/cpu.h"
#include "support/skip.h"

namespace fp8kv {
namespace {

// FNV-1a of the bits.
uint64_t digest(const std::vector<float>& values) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const float value : values) hash = (hash ^ float_bits(value)) * 0x100000001B3u;
  return hash;
}

struct Product {
  static constexpr int kDepth = 203, kRows = 4;
  DType dtype;
  std::vector<float> x;
  test::Elements weight;  // [strip, kDepth]
  std::vector<const std::byte*> rows;

  Product(const CpuKernels& kernels, DType element, uint64_t seed)
      : dtype(element), x(rows_of(seed)), weight(weight_of(kernels.strip, element, seed)) {
    for (int64_t j = 0; j < kernels.strip; ++j) {
      rows.push_back(weight.view().data + j * kDepth * int64_t(dtype_bytes(dtype)));
    }
  }
  static std::vector<float> rows_of(uint64_t seed) {
    Rng rng(seed);
    return test::random_floats(rng, int64_t{kRows} * kTileStride);
  }
  static test::Elements weight_of(int64_t strip, DType element, uint64_t seed) {
    Rng rng(seed + 1);
    return {test::random_floats(rng, strip * kDepth), element, Shape{strip, kDepth}, 1};
  }
};

std::vector<float> by_tiles(const CpuKernels& kernels, const Product& p) {
  alignas(64) float panel[kTileStride * kMaxStrip];
  kernels.pack_panel[p.dtype](p.rows.data(), Product::kDepth, panel);
  std::vector<float> c(size_t{Product::kRows} * kernels.strip);
  kernels.tiles[Product::kRows - 1](p.x.data(), panel, Product::kDepth, c.data(), kernels.strip,
                                    false);
  std::vector<float> columns;  // 16 of them: the narrowest strip of these sets
  for (int r = 0; r < Product::kRows; ++r) {
    columns.insert(columns.end(), c.begin() + r * kernels.strip,
                   c.begin() + r * kernels.strip + 16);
  }
  return columns;
}

std::vector<float> by_dots(const CpuKernels& kernels, const Product& p) {
  std::vector<float> out(size_t{Product::kRows} * kDotWeights);
  kernels.dots[p.dtype][Product::kRows - 1](p.rows.data(), p.x.data(), kTileStride, Product::kDepth,
                                            out.data());
  return out;
}

std::vector<float> by_loops(const CpuKernels& kernels) {
  Rng rng(91);
  std::vector<float> all;
  for (const Activation each : {Activation::silu, Activation::gelu_tanh, Activation::sigmoid}) {
    std::vector<float> x = test::random_floats(rng, 101), up = test::random_floats(rng, 101);
    kernels.activate[static_cast<size_t>(each)](x.data(), up.data(), 101);
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

std::vector<float> by_softmax(const CpuKernels& kernels) {
  Rng rng(93);
  std::vector<float> all, scores = test::random_floats(rng, 208);
  SoftmaxState state{-__builtin_inff(), 0.0f};
  all.push_back(kernels.softmax(scores.data(), 3, 200, 203, 7.0f, state));
  all.insert(all.end(), scores.begin(), scores.begin() + 203);
  all.insert(all.end(), {state.max, state.sum});
  return all;
}

std::vector<float> by_states(const CpuKernels& kernels) {
  Rng rng(92);
  alignas(64) float block[17 * kStateColumns];
  for (float& each : block) each = static_cast<float>(test::random_value(rng));
  const std::vector<float> k = test::random_floats(rng, 17), q = test::random_floats(rng, 17),
                           delta = test::random_floats(rng, kStateColumns);
  std::vector<float> sums(2 * kStateColumns);
  const float decay = 0.9f;
  const StateWrite write{k.data(), delta.data(), &decay};
  const StateRead read{k.data(), q.data(), sums.data(), sums.data() + kStateColumns};
  kernels.state_pass(block, 17, &write, &read);
  return sums;
}

std::vector<const CpuKernels*> those_here(std::initializer_list<CpuIsa> isas) {
  std::vector<const CpuKernels*> here;
  for (const CpuIsa isa : isas) {
    if (has_cpu_isa(isa)) here.push_back(&cpu_kernels(isa));
  }
  return here;
}

}  // namespace

// No processor has all of these sets: each is compared with the recorded bits of AVX2.
TEST_CASE("cpu bits: tiles of AVX2, AVX-512 and NEON give the same") {
  for (const CpuKernels* kernels : those_here(
           {CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16, CpuIsa::neon, CpuIsa::neon_bf16})) {
    CHECK(digest(by_tiles(*kernels, {*kernels, DType::f32, 1})) == 0x1406851CF47B2619u);
    CHECK(digest(by_tiles(*kernels, {*kernels, DType::f16, 2})) == 0x79BD6A5E6821E8D1u);
    CHECK(digest(by_tiles(*kernels, {*kernels, DType::bf16, 3})) == 0xE591F5841F3009FDu);
  }
}

TEST_CASE("cpu bits: products of few rows by AVX2 and NEON are the same") {
  for (const CpuKernels* kernels : those_here({CpuIsa::avx2, CpuIsa::neon, CpuIsa::neon_bf16})) {
    CHECK(digest(by_dots(*kernels, {*kernels, DType::f32, 1})) == 0x436C92E0EBDC1CB5u);
    CHECK(digest(by_dots(*kernels, {*kernels, DType::f16, 2})) == 0x817F12F74E1B8F6Du);
    CHECK(digest(by_dots(*kernels, {*kernels, DType::bf16, 3})) == 0x20DCE44DBE93AECEu);
  }
}

TEST_CASE(
    "cpu bits: activations are the same in every set, softmax and states in all but AVX-512") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(cpu_isa_name(isa));
    const CpuKernels& kernels = cpu_kernels(isa);
    CHECK(digest(by_loops(kernels)) == 0x18A3730100837A2Bu);
    const bool fused = isa >= CpuIsa::avx512;
    CHECK(digest(by_softmax(kernels)) == (fused ? 0x1D3E9E3BF17436E3u : 0x56E5106A23A4C637u));
    CHECK(digest(by_states(kernels)) == (fused ? 0x88F00B276D340766u : 0x6AFBC0EB118A6F66u));
  }
}

namespace {

// x as an f32; if x is not an f32, its neighbour whose last bit is 1.
float rounded_to_odd(double x) {
  auto nearest = static_cast<float>(x);
  if (double{nearest} == x) return nearest;
  if (std::abs(double{nearest}) > std::abs(x)) nearest = std::nextafter(nearest, 0.0f);
  return float_from_bits(float_bits(nearest) | 1u);
}

// BFDOT. Products of numbers this large, and sums of two, are exact in double precision.
float add_pair(float sum, const float* a, const float* b) {
  const float pair = rounded_to_odd(double{a[0]} * b[0] + double{a[1]} * b[1]);
  return rounded_to_odd(double{sum} + pair);
}

float as_bf16(float x) {
  return bf16_to_float(bf16_from_float(x));
}

}  // namespace

// Source: Arm Architecture Reference Manual, BFDotAdd and BFMatMulAdd, with FPCR.EBF at 0.
TEST_CASE("cpu bits: NEON BF16 adds pairs in ascending order, rounded to odd") {
  if (!has_cpu_isa(CpuIsa::neon_bf16)) {
    test::skip("this processor has no FEAT_BF16");
    return;
  }
  const CpuKernels& kernels = cpu_kernels(CpuIsa::neon_bf16);
  for (const int depth : {1, 2, 3, 4, 5, 7, 203, 512}) {
    for (int rows = 1; rows <= kernels.tile_rows; ++rows) {
      CAPTURE(depth);
      CAPTURE(rows);
      Rng rng(static_cast<uint64_t>(depth * 10 + rows));
      const int steps = (depth + 1) / 2;
      std::vector<float> x = test::random_floats(rng, int64_t{rows} * 2 * kTileStride);
      std::vector<float> w = test::random_floats(rng, int64_t{kernels.strip} * 2 * kTileStride);
      // Pairs, with zeros for a missing half; behind them is NaN, which must not be read.
      std::vector<float> a(size_t(rows) * kTileStride, std::nanf(""));
      std::vector<uint16_t> codes(w.size());
      for (size_t i = 0; i < w.size(); ++i) codes[i] = bf16_from_float(w[i]);
      std::vector<const std::byte*> from;
      for (int j = 0; j < kernels.strip; ++j) {
        from.push_back(reinterpret_cast<const std::byte*>(codes.data() + j * 2 * kTileStride));
        for (int k = 0; k < 2 * kTileStride; ++k) {
          float& each = w[size_t(j) * 2 * kTileStride + k];
          each = k < depth ? as_bf16(each) : 0.0f;
        }
      }
      for (int r = 0; r < rows; ++r) {
        for (int k = 0; k < 2 * kTileStride; ++k) {
          float& each = x[size_t(r) * 2 * kTileStride + k];
          each = k < depth ? as_bf16(each) : 0.0f;
        }
        for (int k = 0; k < steps; ++k) {
          const float* pair = &x[size_t(r) * 2 * kTileStride + 2 * k];
          a[size_t(r) * kTileStride + k] =
              float_from_bits(float_bits(pair[0]) >> 16 | float_bits(pair[1]));
        }
      }
      alignas(64) float panel[kTileStride * kMaxStrip];
      std::fill_n(panel, kTileStride * kMaxStrip, std::nanf(""));
      kernels.pack_pairs(from.data(), depth, panel);
      std::vector<float> c(size_t(rows) * kernels.strip);
      kernels.pair_tiles[rows - 1](a.data(), panel, steps, c.data(), kernels.strip, false);
      int64_t wrong = 0;
      for (int r = 0; r < rows; ++r) {
        for (int j = 0; j < kernels.strip; ++j) {
          float sum = 0.0f;
          for (int k = 0; k < 2 * steps; k += 2) {
            sum = add_pair(sum, &x[size_t(r) * 2 * kTileStride + k],
                           &w[size_t(j) * 2 * kTileStride + k]);
          }
          wrong += float_bits(c[size_t(r) * kernels.strip + j]) == float_bits(sum) ? 0 : 1;
        }
      }
      CHECK(wrong == 0);
    }
  }
}

}  // namespace fp8kv
