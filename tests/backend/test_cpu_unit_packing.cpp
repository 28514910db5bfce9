// Numbers that are packed for a matrix unit, as weights, rows and columns.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "base/rng.h"
#include "core/numbers/half.h"
#include "support/backends/cpu.h"
#include "support/backends/matrix_unit_case.h"
#include "support/skip.h"

namespace fp8kv {
namespace {

using test::numbers_of;
using Kind = test::ProductKind;
template <typename T>
using Room = test::UnitRoom<T>;

float number(DType type, uint16_t code) {
  return type == DType::f16 ? f16_to_float(code) : bf16_to_float(code);
}

// One set of numbers, packed as weights and as columns, for 32 rows of `count` codes.
struct Packed {
  std::vector<uint16_t> weights;
  std::vector<float> columns;
};

Packed pack(const UnitNumbers& numbers, DType dtype, const std::vector<std::byte>& codes, int n,
            int64_t count) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(dtype));
  const int64_t steps = (count + kUnitDepth - 1) / kUnitDepth;
  const int64_t parts = parts_of(dtype, numbers.type);
  const int64_t blocks = (count + kUnitRows - 1) / kUnitRows, block_words = parts * kUnitWords;
  Room<uint16_t> weights(steps * parts * kUnitWeights * kUnitDepth);
  Room<float> columns(blocks * block_words);
  std::array<const std::byte*, kUnitWeights> rows{};
  for (int64_t i = 0; i < kUnitWeights; ++i) {
    rows[static_cast<size_t>(i)] = codes.data() + i * count * bytes;
  }
  numbers.pack_weights[dtype](rows.data(), kUnitWeights, count, weights.data());
  numbers.pack_columns[dtype](rows.data(), n, count, columns.data(), block_words);
  return {weights.values(), columns.values()};
}

constexpr Kind kPacked[] = {{DType::f32, DType::bf16},         {DType::f16, DType::bf16},
                            {DType::bf16, DType::bf16},        {DType::f8_e4m3, DType::bf16},
                            {DType::f8_e4m3fnuz, DType::bf16}, {DType::f8_e5m2, DType::bf16},
                            {DType::f8_e5m2fnuz, DType::bf16}, {DType::f32, DType::f16},
                            {DType::f16, DType::f16}};

// Whether `sum`, the sum of the parts, stands for `value`.
bool is_packed(const Kind& kind, float sum, float value) {
  if (std::isnan(value)) return std::isnan(sum);
  if (kind.weights != DType::f32) return sum == value;
  const float error = std::abs(sum - value);
  if (kind.by == DType::bf16) return error <= 0x1p-17f * std::abs(value);
  return error <= std::max(0x1p-22f * std::abs(value), 0x1p-25f);
}

// Random codes: all 8-bit codes occur, but no NaN or infinity in f32 and f16.
std::vector<std::byte> some_codes(Rng& rng, DType dtype, int64_t count) {
  std::vector<std::byte> codes(static_cast<size_t>(count) * dtype_bytes(dtype));
  for (int64_t i = 0; i < count; ++i) {
    const auto value =
        static_cast<float>(std::ldexp(test::random_value(rng), static_cast<int>(i % 9) - 4));
    std::byte* to = codes.data() + i * static_cast<int64_t>(dtype_bytes(dtype));
    if (dtype == DType::f32) F32Element::store(value, 1, to);
    if (dtype == DType::f16) F16Element::store(value, 1, to);
    if (dtype == DType::bf16) Bf16Element::store(value, 1, to);
    if (dtype_bytes(dtype) == 1) *to = static_cast<std::byte>(i);
  }
  return codes;
}

}  // namespace

TEST_CASE("cpu matrix unit: f16 weights lose nothing, and activations keep 16 bits") {
  std::array<const std::byte*, kUnitWeights> from{};
  for (uint32_t high = 0; high < 0x10000; high += kUnitWeights) {
    std::array<uint16_t, kUnitWeights> codes;
    for (uint32_t w = 0; w < kUnitWeights; ++w) {
      codes[w] = static_cast<uint16_t>(high + w);
      from[w] = reinterpret_cast<const std::byte*>(&codes[w]);
    }
    Room<uint16_t> packed(2 * kUnitWeights * kUnitDepth);
    kPlainMatrixUnit.bf16.pack_weights.f16(from.data(), kUnitWeights, 1, packed.data());
    for (uint32_t w = 0; w < kUnitWeights; ++w) {
      const float value = f16_to_float(codes[w]);
      const float first = bf16_to_float(packed.data()[w * kUnitDepth]);
      const float second = bf16_to_float(packed.data()[kUnitWeights * kUnitDepth + w * kUnitDepth]);
      CAPTURE(codes[w]);
      if (std::isfinite(value)) {
        REQUIRE(first + second == value);
      } else {
        REQUIRE((second == 0.0f && !std::isfinite(first)));
      }
    }
  }
  Rng rng(9);
  for (int i = 0; i < 2000; ++i) {
    const auto x = static_cast<float>(std::ldexp(test::random_value(rng), i % 200 - 100));
    const float* row = &x;
    Room<float> packed(2 * kUnitWords);
    kPlainMatrixUnit.bf16.pack_rows[1](&row, 1, 1, packed.data());
    const auto part = [&](int64_t at) {
      return bf16_to_float(static_cast<uint16_t>(float_bits(packed.data()[at])));
    };
    CAPTURE(x);
    REQUIRE(std::abs(double{part(0)} + part(kUnitWords) - x) <= 0x1p-17 * std::abs(double{x}));
  }
}

TEST_CASE("cpu matrix unit: by f16 activations keep 22 bits, or 2^-25") {
  Rng rng(10);
  for (int i = 0; i < 2000; ++i) {
    const auto x = static_cast<float>(std::ldexp(test::random_value(rng), i % 60 - 45));
    const float* row = &x;
    Room<float> packed(2 * kUnitWords);
    kPlainF16MatrixUnit.f16->pack_rows[1](&row, 1, 1, packed.data());
    const auto part = [&](int64_t at) {
      return f16_to_float(static_cast<uint16_t>(float_bits(packed.data()[at])));
    };
    CAPTURE(x);
    REQUIRE(std::abs(double{part(0)} + part(kUnitWords) - x) <=
            std::max(0x1p-22 * std::abs(double{x}), 0x1p-25));
  }
}

TEST_CASE("cpu matrix unit: packed numbers are the numbers, in either order") {
  Rng rng(11);
  for (const Kind& kind : kPacked) {
    const DType dtype = kind.weights;
    for (const auto& [n, count] : {std::pair{32, 40}, {32, 64}, {1, 16}, {31, 7}}) {
      CAPTURE(dtype_name(dtype));
      CAPTURE(dtype_name(kind.by));
      CAPTURE(n);
      CAPTURE(count);
      const std::vector<std::byte> codes = some_codes(rng, dtype, kUnitWeights * count);
      std::vector<float> values(static_cast<size_t>(kUnitWeights * count));
      kPortableKernels.to_float[dtype](codes.data(), kUnitWeights * count, values.data());
      const UnitNumbers& numbers = numbers_of(kPlainF16MatrixUnit, kind.by);
      const Packed packed = pack(numbers, dtype, codes, n, count);
      const int64_t parts = kind.weight_parts();
      const int64_t steps = (count + kUnitDepth - 1) / kUnitDepth;
      for (int64_t row = 0; row < kUnitWeights; ++row) {
        for (int64_t k = 0; k < steps * kUnitDepth; ++k) {
          float sum = 0;
          for (int64_t part = 0; part < parts; ++part) {
            const int64_t at = (k / kUnitDepth * parts + part) * kUnitWeights * kUnitDepth +
                               row * kUnitDepth + k % kUnitDepth;
            sum += number(kind.by, packed.weights[at]);
          }
          const float value = k < count ? values[row * count + k] : 0.0f;
          REQUIRE(is_packed(kind, sum, value));
        }
      }
      const int64_t blocks = (count + kUnitRows - 1) / kUnitRows;
      for (int64_t column = 0; column < blocks * kUnitRows; ++column) {
        for (int64_t line = 0; line < kUnitDepth; ++line) {
          float sum = 0;
          for (int64_t part = 0; part < parts; ++part) {
            const float word = packed.columns[(column / kUnitRows * parts + part) * kUnitWords +
                                              line / 2 * kUnitRows + column % kUnitRows];
            sum += number(kind.by, static_cast<uint16_t>(float_bits(word) >> (line % 2 * 16)));
          }
          const float value = line < n && column < count ? values[line * count + column] : 0.0f;
          REQUIRE(is_packed(kind, sum, value));
        }
      }
    }
  }
}

#if defined(__x86_64__)
namespace {

// Packing needs no tiles, so it is tested on more processors than those with AMX.
bool has_vectors_of_amx() {
  return has_cpu_isa(CpuIsa::avx512_bf16) && __builtin_cpu_supports("avx512vbmi");
}

}  // namespace

TEST_CASE("cpu matrix unit: AMX packs what the plain one packs") {
  if (!has_vectors_of_amx()) {
    test::skip("this processor has no AVX-512 with BF16 and VBMI");
    return;
  }
  Rng rng(13);
  for (const Kind& kind : kPacked) {
    const DType dtype = kind.weights;
    const UnitNumbers& plain_numbers = numbers_of(kPlainF16MatrixUnit, kind.by);
    const UnitNumbers& amx_numbers = numbers_of(kAmxF16MatrixUnit, kind.by);
    for (const auto& [n, count] : {std::pair{32, 128}, {32, 64}, {17, 16}, {31, 7}, {1, 100}}) {
      CAPTURE(dtype_name(dtype));
      CAPTURE(dtype_name(kind.by));
      CAPTURE(n);
      CAPTURE(count);
      const std::vector<std::byte> codes = some_codes(rng, dtype, kUnitWeights * count);
      const Packed plain = pack(plain_numbers, dtype, codes, n, count);
      const Packed amx = pack(amx_numbers, dtype, codes, n, count);
      CHECK((plain.weights == amx.weights));
      CHECK(std::memcmp(plain.columns.data(), amx.columns.data(), plain.columns.size() * 4) == 0);
    }
  }
}

#endif

}  // namespace fp8kv
