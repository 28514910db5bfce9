#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include <doctest/doctest.h>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "core/numbers/half.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"

namespace fp8kv {
namespace {

// Memory for a matrix unit, with the alignment that its callers use.
template <typename T>
struct Room {
  explicit Room(int64_t count) : size(static_cast<size_t>(count)) {
    memory.resize(size + 64 / sizeof(T));
  }
  T* data() {
    const auto at = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (64 - at % 64) % 64 / sizeof(T);
  }
  std::vector<T> values() { return {data(), data() + size}; }
  size_t size;
  std::vector<T> memory;
};

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

// A kind of product: weights of one type, on a unit that multiplies another.
struct Kind {
  DType weights;
  DType by;

  int weight_parts() const { return parts_of(weights, by); }
  int row_parts() const { return weights == DType::bf16 ? 1 : 2; }
  bool is_f16() const { return weights == DType::f16; }
  float value(uint16_t code) const { return is_f16() ? f16_to_float(code) : bf16_to_float(code); }
};
constexpr Kind kKinds[] = {
    {DType::bf16, DType::bf16}, {DType::f16, DType::bf16}, {DType::f16, DType::f16}};

const UnitNumbers& numbers_of(const MatrixUnit& unit, DType type) {
  return type == DType::f16 ? *unit.f16 : unit.bf16;
}

float number(DType type, uint16_t code) {
  return type == DType::f16 ? f16_to_float(code) : bf16_to_float(code);
}

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

namespace {

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

// The bits of the values, so that NaNs and signed zeros are compared too.
std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::isnan(value) ? 0x7FC00000u : float_bits(value));
  }
  return bits;
}

// Packing needs no tiles, so it is tested on more processors than those with AMX.
bool has_vectors_of_amx() {
  return has_cpu_isa(CpuIsa::avx512_bf16) && __builtin_cpu_supports("avx512vbmi");
}

}  // namespace

TEST_CASE("cpu matrix unit: AMX packs what the plain one packs") {
  if (!has_vectors_of_amx()) {
    MESSAGE("[skipped] this processor has no AVX-512 with BF16 and VBMI");
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

TEST_CASE("cpu matrix unit: AMX has the bits of the plain one") {
  if (!has_cpu_isa(CpuIsa::amx)) {
    MESSAGE("[skipped] this processor has no AMX");
    return;
  }
  Rng rng(5);
  const float inf = std::numeric_limits<float>::infinity();
  const float odd[] = {inf,          -inf,      std::nanf(""), 0x1p-130f,
                       -0x1.8p-127f, 0x1p-126f, 3.4e38f,       -0.0f};
  for (const Kind& kind : kKinds) {
    if (kind.by == DType::f16 && !has_cpu_isa(CpuIsa::amx_fp16)) {
      MESSAGE("[skipped] this processor has no AMX with FP16");
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
