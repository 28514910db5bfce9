// Products of a matrix unit.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "base/rng.h"
#include "core/numbers/half.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"
#include "support/backends/matrix_unit_case.h"
#include "support/skip.h"

namespace fp8kv {
namespace {

using test::numbers_of;
using Kind = test::ProductKind;
template <typename T>
using Room = test::UnitRoom<T>;

struct Operands {
  int64_t count;                  // elements of a row
  std::vector<float> x;           // [rows][count]
  std::vector<uint16_t> weights;  // [kUnitWeights][count]
};

constexpr int kRows = 41;  // blocks of 16, 16 and 9
constexpr int64_t kNarrow = 21;

float bias_of(int64_t column) {
  return 0.25f * static_cast<float>(column) - 2;
}

Operands random_operands(Rng& rng, int64_t count, bool f16) {
  Operands operands{count, test::random_floats(rng, kRows * count), {}};
  for (int64_t i = 0; i < kUnitWeights * count; ++i) {
    const auto value = static_cast<float>(test::random_value(rng));
    operands.weights.push_back(f16 ? f16_from_float(value) : bf16_from_float(value));
  }
  return operands;
}

constexpr Kind kKinds[] = {
    {DType::bf16, DType::bf16}, {DType::f16, DType::bf16}, {DType::f16, DType::f16}};

float scale_of(int64_t row) {
  return std::ldexp(1.0f, static_cast<int>(row % 7) - 3);
}

struct Product {
  std::vector<float> rows;        // packed
  std::vector<uint16_t> weights;  // packed
  std::vector<float> out;         // [kRows][kUnitWeights]
  std::vector<float> narrow;      // [kRows][kNarrow]: with a bias, added to old values
  std::vector<float> scaled;      // like `narrow`, for rows with a scale_of
};

// Multiplies twice, with the layouts of cpu_unit_products.cpp; the second time adds to the sums.
Product multiply(const MatrixUnit& unit, const Kind& kind, const Operands& operands) {
  const UnitNumbers& numbers = numbers_of(unit, kind.by);
  const int parts = kind.row_parts(), weight_parts = kind.weight_parts();
  const int64_t steps = (operands.count + kUnitDepth - 1) / kUnitDepth;
  constexpr int64_t kBlocks = (kRows + kUnitRows - 1) / kUnitRows;
  const int64_t block_words = steps * parts * kUnitWords;
  Room<float> rows(kBlocks * block_words), sums(kBlocks * kUnitSums), out(kRows * kUnitWeights);
  Room<uint16_t> weights(steps * weight_parts * kUnitWeights * kUnitDepth);
  for (int64_t block = 0; block < kBlocks; ++block) {
    std::array<const float*, kUnitRows> from{};
    const int n = static_cast<int>(std::min<int64_t>(kUnitRows, kRows - block * kUnitRows));
    for (int i = 0; i < n; ++i) {
      from[static_cast<size_t>(i)] = &operands.x[(block * kUnitRows + i) * operands.count];
    }
    numbers.pack_rows[parts - 1](from.data(), n, operands.count, rows.data() + block * block_words);
  }
  std::array<const std::byte*, kUnitWeights> from{};
  for (int64_t w = 0; w < kUnitWeights; ++w) {
    from[static_cast<size_t>(w)] =
        reinterpret_cast<const std::byte*>(operands.weights.data() + w * operands.count);
  }
  numbers.pack_weights[kind.weights](from.data(), kUnitWeights, operands.count, weights.data());
  unit.begin();
  for (const bool add : {false, true}) {
    numbers.multiply[weight_parts - 1][parts - 1](packed_weights(weights.data(), weight_parts),
                                                  steps, rows.data(), kBlocks, block_words,
                                                  packed_sums(sums.data()), add, {});
  }
  unit.end();
  for (int64_t block = 0; block < kBlocks; ++block) {
    const int n = static_cast<int>(std::min<int64_t>(kUnitRows, kRows - block * kUnitRows));
    // Unpacks in two turns, so that one begins within a block.
    const int first = n / 3;
    float* to = out.data() + block * kUnitRows * kUnitWeights;
    const float* of_block = sums.data() + block * kUnitSums;
    unit.unpack(of_block, 0, first, {to, kUnitWeights, kUnitWeights});
    unit.unpack(of_block, first, n - first,
                {to + first * kUnitWeights, kUnitWeights, kUnitWeights});
  }
  std::vector<float> bias, narrow(kRows * kNarrow, 3.0f), scaled = narrow;
  for (int64_t w = 0; w < kNarrow; ++w) bias.push_back(bias_of(w));
  for (int64_t row = 0; row < kRows; ++row) {
    const float* of_block = sums.data() + row / kUnitRows * kUnitSums;
    const int first = static_cast<int>(row % kUnitRows);
    const int64_t at = row * kNarrow;
    unit.unpack(of_block, first, 1, {&narrow[at], kNarrow, kNarrow, bias.data(), true});
    const float scale = scale_of(row);
    unit.unpack(of_block, first, 1, {&scaled[at], kNarrow, kNarrow, bias.data(), true, &scale});
  }
  return {rows.values(), weights.values(), out.values(), narrow, scaled};
}

}  // namespace

TEST_CASE("cpu matrix unit: products are those of the parts' numbers") {
  Rng rng(3);
  for (const Kind& kind : kKinds) {
    for (const int64_t count : {1, 31, 32, 33, 96, 200}) {
      CAPTURE(dtype_name(kind.weights));
      CAPTURE(dtype_name(kind.by));
      CAPTURE(count);
      const Operands operands = random_operands(rng, count, kind.is_f16());
      const Product product = multiply(kPlainF16MatrixUnit, kind, operands);
      // Products of bf16 are exact, and each addition rounds once. With two bf16 parts, 2^-18 of x
      // and the product of the lesser parts are missing. With two f16 parts, 2^-23 of x or 2^-25 of
      // 1 is missing.
      const double missing = !kind.is_f16() ? 0 : kind.by == DType::bf16 ? 0x1p-16 : 0x1p-22;
      const double floor = kind.by == DType::f16 ? 2 * static_cast<double>(count) * 0x1p-25 : 0;
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t w = 0; w < kUnitWeights; ++w) {
          double sum = 0, magnitudes = 0;
          for (int64_t k = 0; k < count; ++k) {
            const float x = operands.x[row * count + k];
            const float weight = kind.value(operands.weights[w * count + k]);
            const double one =
                double{kind.is_f16() ? x : bf16_to_float(bf16_from_float(x))} * weight;
            sum += 2 * one;
            magnitudes += 2 * std::abs(one);
          }
          const double allowed =
              ((static_cast<double>(count) + 4) * test::kUnitF32 + missing) * magnitudes + floor;
          const float found = product.out[row * kUnitWeights + w];
          REQUIRE(std::abs(found - sum) <= allowed);
          if (w >= kNarrow) continue;
          REQUIRE(product.narrow[row * kNarrow + w] == 3.0f + (found + bias_of(w)));
          REQUIRE(product.scaled[row * kNarrow + w] == 3.0f + (found / scale_of(row) + bias_of(w)));
        }
      }
    }
  }
}

TEST_CASE("cpu matrix unit: a row for f16 is scaled to its range, and back exactly") {
  for (const float largest : {1.0f, 0.3f, 65504.0f, 1e9f, 3.4e38f, 1e-9f, 0x1p-126f, 0x1p-140f}) {
    CAPTURE(largest);
    const float scale = f16_scale(float_bits(largest));
    CHECK(std::isnormal(scale));
    CHECK(std::isnormal(1 / scale));
    CHECK(std::frexp(scale, std::array<int, 1>{}.data()) == 0.5f);
    CHECK(largest * scale < 0x1p15f);
    if (largest >= 0x1p-112f) CHECK(largest * scale >= 0x1p14f);
  }
  for (const float other : {0.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    CHECK(f16_scale(float_bits(other)) == 1.0f);
  }
}

TEST_CASE("cpu matrix unit: one product tells a unit with other products") {
  CHECK(same_f16_product(kPlainF16MatrixUnit, kPlainF16MatrixUnit));
  UnitNumbers of_bf16 = *kPlainF16MatrixUnit.f16;
  of_bf16.multiply[1][1] = kPlainF16MatrixUnit.bf16.multiply[1][1];
  MatrixUnit other = kPlainF16MatrixUnit;
  other.f16 = &of_bf16;
  CHECK_FALSE(same_f16_product(kPlainF16MatrixUnit, other));
}

#if defined(__x86_64__)
namespace {

// The bits of the values, so that NaNs and signed zeros are compared too.
std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::isnan(value) ? 0x7FC00000u : float_bits(value));
  }
  return bits;
}

}  // namespace

TEST_CASE("cpu matrix unit: AMX has the bits of the plain one") {
  if (!has_cpu_isa(CpuIsa::amx)) {
    test::skip("this processor has no AMX");
    return;
  }
  Rng rng(5);
  const float inf = std::numeric_limits<float>::infinity();
  const float odd[] = {inf,          -inf,      std::nanf(""), 0x1p-130f,
                       -0x1.8p-127f, 0x1p-126f, 3.4e38f,       -0.0f};
  for (const Kind& kind : kKinds) {
    if (kind.by == DType::f16 && !has_cpu_isa(CpuIsa::amx_fp16)) {
      test::skip("this processor has no AMX with FP16");
      continue;
    }
    for (const int64_t count : {1, 15, 32, 47, 512, 1000}) {
      for (const bool with_odd : {false, true}) {
        CAPTURE(dtype_name(kind.weights));
        CAPTURE(dtype_name(kind.by));
        CAPTURE(count);
        CAPTURE(with_odd);
        Operands operands = random_operands(rng, count, kind.is_f16());
        // Adds magnitudes whose products are below the normal range.
        for (size_t i = 0; i < operands.x.size(); i += 5) {
          operands.x[i] = std::ldexp(operands.x[i], -static_cast<int>(i % 140));
        }
        for (size_t i = 0; with_odd && i < 8; ++i) {
          operands.x[(i * 37) % operands.x.size()] = odd[i];
          operands.weights[(i * 61) % operands.weights.size()] =
              kind.is_f16() ? f16_from_float(odd[i]) : bf16_from_float(odd[i]);
        }
        const Product plain = multiply(kPlainF16MatrixUnit, kind, operands);
        const Product amx = multiply(kAmxF16MatrixUnit, kind, operands);
        if (!with_odd) {  // a NaN's other bits may differ
          CHECK((bits_of(plain.rows) == bits_of(amx.rows)));
          CHECK((plain.weights == amx.weights));
        }
        CHECK((bits_of(plain.out) == bits_of(amx.out)));
        CHECK((bits_of(plain.narrow) == bits_of(amx.narrow)));
        CHECK((bits_of(plain.scaled) == bits_of(amx.scaled)));
      }
    }
  }
}
#endif

}  // namespace fp8kv
