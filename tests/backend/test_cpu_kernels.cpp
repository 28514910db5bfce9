#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "core/numbers/histogram.h"
#include "support/backends/cpu.h"

namespace fp8kv {
namespace {

constexpr DType kNarrowTypes[] = {DType::f16,         DType::bf16,    DType::f8_e4m3,
                                  DType::f8_e4m3fnuz, DType::f8_e5m2, DType::f8_e5m2fnuz};

// Every code of a type, in order.
std::vector<std::byte> all_codes(DType dtype) {
  const size_t size = dtype_bytes(dtype);
  const size_t count = size_t{1} << (8 * size);
  std::vector<std::byte> codes(count * size);
  for (size_t code = 0; code < count; ++code) {
    for (size_t i = 0; i < size; ++i)
      codes[code * size + i] = static_cast<std::byte>(code >> 8 * i);
  }
  return codes;
}

// Whether both have the same bits, or both are NaN.
bool same(float a, float b) {
  return float_bits(a) == float_bits(b) || (std::isnan(a) && std::isnan(b));
}

}  // namespace

TEST_CASE("kernels: every code of every type becomes the same float as in plain C++") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType dtype : kNarrowTypes) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(std::string(dtype_name(dtype)));
      const std::vector<std::byte> codes = all_codes(dtype);
      const auto count = static_cast<int64_t>(codes.size() / dtype_bytes(dtype));
      std::vector<float> expected(count), actual(count);
      kPortableKernels.to_float[dtype](codes.data(), count, expected.data());
      cpu_kernels(isa).to_float[dtype](codes.data(), count, actual.data());
      int64_t wrong = 0;
      for (int64_t i = 0; i < count; ++i) wrong += same(actual[i], expected[i]) ? 0 : 1;
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("kernels: a panel is the transpose of its rows, for every code and depth") {
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType dtype : kNarrowTypes) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      CAPTURE(std::string(dtype_name(dtype)));
      const CpuKernels& kernels = cpu_kernels(isa);
      const std::vector<std::byte> codes = all_codes(dtype);
      const auto size = static_cast<int64_t>(dtype_bytes(dtype));
      const auto n_codes = static_cast<int64_t>(codes.size()) / size;
      for (const int depth : {1, 15, 16, 31, 32, 63, 64, 65, 128, 200}) {
        const std::byte* rows[kMaxStrip];
        // Rows begin at different codes, so that every code is used.
        for (int j = 0; j < kernels.strip; ++j) {
          rows[j] = codes.data() + (n_codes - depth) * j / kernels.strip * size;
        }
        alignas(64) float panel[kTileStride * kMaxStrip];
        kernels.pack_panel[dtype](rows, depth, panel);
        int64_t wrong = 0;
        for (int j = 0; j < kernels.strip; ++j) {
          std::vector<float> expected(depth);
          kPortableKernels.to_float[dtype](rows[j], depth, expected.data());
          for (int k = 0; k < depth; ++k) {
            wrong += same(panel[k * kernels.strip + j], expected[k]) ? 0 : 1;
          }
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("kernels: floats around every boundary are stored as in plain C++") {
  // All signs, exponents and upper mantissa bits, with low bits that decide ties.
  std::vector<float> values;
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (const uint32_t low : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      values.push_back(float_from_bits(high << 16 | low));
    }
  }
  const auto count = static_cast<int64_t>(values.size());
  for (const CpuIsa isa : test::available_isas()) {
    for (const DType dtype : kNarrowTypes) {
      for (const float scale : {1.0f, 0.0123f}) {
        CAPTURE(std::string(cpu_isa_name(isa)));
        CAPTURE(std::string(dtype_name(dtype)));
        const size_t size = dtype_bytes(dtype);
        std::vector<std::byte> expected(values.size() * size), actual(values.size() * size);
        kPortableKernels.store[dtype](values.data(), count, scale, expected.data());
        cpu_kernels(isa).store[dtype](values.data(), count, scale, actual.data());
        // Compared as values, since NaN has many codes in f16.
        std::vector<float> expected_values(count), actual_values(count);
        kPortableKernels.to_float[dtype](expected.data(), count, expected_values.data());
        kPortableKernels.to_float[dtype](actual.data(), count, actual_values.data());
        int64_t wrong = 0;
        for (int64_t i = 0; i < count; ++i) {
          wrong += same(actual_values[i], expected_values[i]) ? 0 : 1;
        }
        CHECK(wrong == 0);
        if (fp8_format(dtype)) CHECK(actual == expected);
      }
    }
  }
}

TEST_CASE("kernels: the largest magnitude and the quotients are those of plain loops") {
  Rng rng(43);
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    for (const int64_t count : {0, 1, 7, 63, 64, 65, 200, 1003}) {
      std::vector<float> values = test::random_floats(rng, static_cast<size_t>(count));
      float largest = 0.25f;
      for (const float value : values) largest = std::max(largest, std::fabs(value));
      CHECK(cpu_kernels(isa).largest_bits(values.data(), count, float_bits(0.25f)) ==
            float_bits(largest));
      std::vector<float> quotients = values;
      cpu_kernels(isa).divide(quotients.data(), count, 0.3f);
      int64_t wrong = 0;
      for (size_t i = 0; i < values.size(); ++i) wrong += quotients[i] == values[i] / 0.3f ? 0 : 1;
      CHECK(wrong == 0);
    }
  }
}

// The first and last magnitude of every bin, magnitudes below and above all bins, infinity and NaN;
// each with both signs.
TEST_CASE("kernels: bins of magnitudes are those of each alone") {
  std::vector<float> values;
  for (int bin = 0; bin < kMagnitudeBins; ++bin) {
    const uint32_t first = float_bits(magnitude_bin_floor(bin));
    for (const uint32_t bits : {first - 1, first, first | 0x80000000u}) {
      values.push_back(float_from_bits(bits));
    }
  }
  for (const uint32_t bits : {0u, 1u, 0x80000000u, 0x7F7FFFFFu}) {
    values.push_back(float_from_bits(bits));
  }
  std::vector<float> special = values;
  special.push_back(-INFINITY);
  std::vector<float> with_nan = special;
  with_nan.insert(with_nan.begin(), NAN);
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    for (const std::vector<float>& each : {std::vector<float>{}, values, special, with_nan}) {
      std::vector<uint32_t> bins(each.size());
      const uint32_t largest = cpu_kernels(isa).magnitude_bins(
          each.data(), static_cast<int64_t>(each.size()), bins.data());
      uint32_t expected = 0;
      int64_t wrong = 0;
      for (size_t i = 0; i < each.size(); ++i) {
        const uint32_t magnitude = float_bits(each[i]) & 0x7FFFFFFFu;
        expected = std::max(expected, magnitude);
        wrong += static_cast<int>(bins[i]) == magnitude_bin(magnitude) ? 0 : 1;
      }
      CHECK(largest == expected);
      CHECK(wrong == 0);
    }
  }
}

// Codes of all kinds, with NaN; columns are whole strips, but not whole groups of strips.
TEST_CASE("kernels: a tile of rows has the bits of one with a panel") {
  constexpr int64_t kColumns = 160, kStride = 200;
  Rng rng(47);
  for (const CpuIsa isa : test::available_isas()) {
    const CpuKernels& kernels = cpu_kernels(isa);
    if (kernels.row_tiles.f32 == nullptr) continue;
    CAPTURE(std::string(cpu_isa_name(isa)));
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3,
                              DType::f8_e4m3fnuz, DType::f8_e5m2, DType::f8_e5m2fnuz}) {
      CAPTURE(std::string(dtype_name(dtype)));
      const size_t size = dtype_bytes(dtype);
      for (const int depth : {1, 9, 256}) {
        std::vector<std::byte> elements(static_cast<size_t>(depth * kColumns) * size + 1);
        for (std::byte& each : elements) each = static_cast<std::byte>(rng.next() >> 56);
        std::vector<const std::byte*> rows;
        for (int k = 0; k < depth; ++k) {
          rows.push_back(elements.data() + 1 + static_cast<size_t>(k * kColumns) * size);
        }
        for (int n = 1; n <= kMaxRowTiles; ++n) {
          const std::vector<float> a =
              test::random_floats(rng, static_cast<size_t>(n * kTileStride));
          std::vector<float> expected = test::random_floats(rng, static_cast<size_t>(n * kStride));
          std::vector<float> actual = expected;
          alignas(64) float panel[kTileStride * kMaxStrip];
          for (int64_t first = 0; first < kColumns; first += kernels.strip) {
            std::vector<const std::byte*> part = rows;
            for (const std::byte*& row : part) row += first * static_cast<int64_t>(size);
            kernels.copy_panel[dtype](part.data(), depth, kernels.strip, panel);
            kernels.tiles[n - 1](a.data(), panel, depth, expected.data() + first, kStride, true);
          }
          kernels.row_tiles[dtype][n - 1](a.data(), rows.data(), depth, kColumns, actual.data(),
                                          kStride);
          int64_t wrong = 0;
          for (size_t i = 0; i < actual.size(); ++i) wrong += same(actual[i], expected[i]) ? 0 : 1;
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("kernels: a tile of keys has the bits of one with a panel") {
  Rng rng(48);
  for (const CpuIsa isa : test::available_isas()) {
    const CpuKernels& kernels = cpu_kernels(isa);
    CAPTURE(std::string(cpu_isa_name(isa)));
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3,
                              DType::f8_e4m3fnuz, DType::f8_e5m2, DType::f8_e5m2fnuz}) {
      if (kernels.key_tiles[dtype] == nullptr) continue;
      CAPTURE(std::string(dtype_name(dtype)));
      const auto size = static_cast<int64_t>(dtype_bytes(dtype));
      for (const int depth : {64, 128, 256}) {
        std::vector<std::byte> elements(static_cast<size_t>(kernels.strip * depth * size) + 1);
        for (std::byte& each : elements) each = static_cast<std::byte>(rng.next() >> 56);
        std::vector<const std::byte*> keys;
        for (int j = 0; j < kernels.strip; ++j) {
          keys.push_back(elements.data() + 1 + j * depth * size);
        }
        alignas(64) float panel[kTileStride * kMaxStrip];
        kernels.pack_panel[dtype](keys.data(), depth, panel);
        for (int n = 1; n <= kMaxRowTiles; ++n) {
          const std::vector<float> a =
              test::random_floats(rng, static_cast<size_t>(n * kTileStride));
          std::vector<float> expected(static_cast<size_t>(n * kTileStride)), actual = expected;
          kernels.tiles[n - 1](a.data(), panel, depth, expected.data(), kTileStride, false);
          kernels.key_tiles[dtype][n - 1](a.data(), keys.data(), depth, actual.data(), kTileStride);
          int64_t wrong = 0;
          for (size_t i = 0; i < actual.size(); ++i) wrong += same(actual[i], expected[i]) ? 0 : 1;
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("kernels: rounding in place is a store and a load") {
  Rng rng(41);
  std::vector<float> values = test::random_floats(rng, 1003);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(values[i], int(i % 60) - 35);
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(std::string(cpu_isa_name(isa)));
    std::vector<float> f16 = values, bf16 = values;
    cpu_kernels(isa).round_f16(f16.data(), 1003);
    cpu_kernels(isa).round_bf16(bf16.data(), 1003);
    int64_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      wrong += f16[i] == f16_to_float(f16_from_float(values[i])) ? 0 : 1;
      wrong += bf16[i] == bf16_to_float(bf16_from_float(values[i])) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace fp8kv
