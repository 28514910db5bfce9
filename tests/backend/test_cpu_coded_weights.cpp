// Products with weights in their stored form, against products with decoded ones.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "support/backends/cpu.h"
#include "support/backends/wide_quantised_case.h"
#include "support/sanitizers.h"

namespace fp8kv {
namespace {

// x * weight^T as floats, to compare bit by bit.
std::vector<float> product(Backend& backend, const std::vector<float>& x, int64_t rows,
                           const Projection& weight) {
  const Tensor in = test::tensor_of(backend, x, Shape{rows, weight.weight.shape[1]});
  const Tensor out = backend.allocate(DType::f32, Shape{rows, weight.weight.shape[0]});
  Projection projection = weight;
  projection.out = out.view();
  backend.linear(in.view(), std::span(&projection, 1));
  return test::floats_of(backend, out.view());
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("cpu coded weights: products have the bits of decoded ones, whatever the form") {
  for (test::QuantisedCase& quantised : test::all_quantised_cases()) {
    CAPTURE(quantised.name);
    const QuantisedMatrix& matrix = quantised.on_host();
    const Shape shape{matrix.rows, matrix.columns};
    for (const CpuIsa isa : test::available_isas()) {
      CAPTURE(cpu_isa_name(isa));
      const auto backend = make_cpu_backend(3, isa);
      for (const DType dtype : {DType::f16, DType::bf16}) {
        std::vector<Tensor> storage;
        const auto codes = backend->in_place(matrix, dtype, WeightUse::linear, storage);
        if (!codes) continue;
        const Tensor decoded = backend->allocate(dtype, shape);
        backend->decode_weights(matrix, decoded.view());
        Projection plain, coded;
        plain.weight = decoded.view();
        coded.weight = {nullptr, dtype, shape};
        coded.codes = codes;
        // Few rows, which are multiplied with the codes; more rows, by dot products; many, by
        // tiles.
        const std::vector<int64_t> counts = test::kEmulated
                                                ? std::vector<int64_t>{1, 7, 17}
                                                : std::vector<int64_t>{1, 2, 3, 4, 7, 16, 17, 40};
        for (const int64_t rows : counts) {
          CAPTURE(rows);
          Rng rng(static_cast<uint64_t>(rows));
          const std::vector<float> x = test::random_floats(rng, rows * matrix.columns);
          const auto other = make_cpu_backend(3, test::isa_like_codes(isa, dtype, rows));
          CHECK(same_bits(product(*backend, x, rows, coded), product(*other, x, rows, plain)));
        }
      }
    }
  }
}

// Every code, with NaN in odd rows only. Scales give subnormal numbers, infinities and numbers
// between.
TEST_CASE("cpu coded weights: products have the bits of decoded ones, whatever codes and scales") {
  constexpr int64_t kRows = 16, kColumns = 256;
  const std::vector<float> scales = {0x1p-140f,   0x1.8p-120f, 0x1.3p-91f, 0x1.7p-89f,
                                     -0x1.7p-60f, 0x1.9p-14f,  0.0f,       1.0f,
                                     -0x1.55p-5f, 0x1.fp9f,    0x1.1p60f,  0x1.7p89f,
                                     0x1.7p91f,   0x1p119f,    0x1p127f,   0x1.23p-9f};
  REQUIRE(scales.size() == kRows);
  for (const WeightCodes form : {WeightCodes::e4m3fn, WeightCodes::i8}) {
    std::vector<uint8_t> codes(kRows * kColumns);
    for (size_t i = 0; i < codes.size(); ++i) {
      const auto code = static_cast<uint8_t>(i * 37);
      const bool nan = form == WeightCodes::e4m3fn && (code & 0x7F) == 0x7F;
      codes[i] = nan && i / kColumns % 2 == 0 ? 0x40 : code;
    }
    QuantisedMatrix matrix;
    matrix.codes_as = form;
    matrix.rows = kRows;
    matrix.columns = matrix.block_columns = kColumns;
    matrix.row_step = 1;
    matrix.codes = codes.data();
    matrix.scales = scales.data();
    for (const CpuIsa isa : test::available_isas()) {
      CAPTURE(cpu_isa_name(isa));
      const auto backend = make_cpu_backend(2, isa);
      for (const DType dtype : {DType::f16, DType::bf16}) {
        std::vector<Tensor> storage;
        Projection plain, coded;
        coded.codes = backend->in_place(matrix, dtype, WeightUse::linear, storage);
        REQUIRE(coded.codes);
        const Tensor decoded = backend->allocate(dtype, Shape{kRows, kColumns});
        backend->decode_weights(matrix, decoded.view());
        plain.weight = decoded.view();
        coded.weight = {nullptr, dtype, decoded.view().shape};
        for (const int64_t rows : {1, 2, 4, 20}) {
          CAPTURE(rows);
          Rng rng(static_cast<uint64_t>(rows));
          const std::vector<float> x = test::random_floats(rng, rows * kColumns);
          std::vector<float> a = product(*backend, x, rows, coded);
          const auto other = make_cpu_backend(2, test::isa_like_codes(isa, dtype, rows));
          std::vector<float> b = product(*other, x, rows, plain);
          // Which NaN a product gives is not promised.
          for (std::vector<float>* each : {&a, &b}) {
            for (float& value : *each) value = std::isnan(value) ? -0.0f : value;
          }
          CHECK(same_bits(a, b));
        }
      }
    }
  }
}

TEST_CASE("cpu coded weights: forms as models have them are read in place") {
  const auto backend = make_cpu_backend(1);
  for (test::QuantisedCase& quantised : test::wide_quantised_cases()) {
    CAPTURE(quantised.name);
    std::vector<Tensor> storage;
    CHECK(backend->in_place(quantised.on_host(), DType::bf16, WeightUse::linear, storage));
    CHECK_FALSE(backend->in_place(quantised.on_host(), DType::f32, WeightUse::linear, storage));
  }
  // Codes with groups in another order must be decoded.
  test::QuantisedCase moved = test::wide_quantised_cases()[9];
  REQUIRE(moved.matrix.codes_as == WeightCodes::words_down);
  std::vector<Tensor> storage;
  CHECK(backend->in_place(moved.on_host(), DType::bf16, WeightUse::linear, storage));
  std::swap(moved.groups.front(), moved.groups.back());
  CHECK_FALSE(backend->in_place(moved.on_host(), DType::bf16, WeightUse::linear, storage));
}

TEST_CASE("cpu coded weights: rows of a matrix are those of the whole") {
  for (test::QuantisedCase& quantised : test::all_quantised_cases()) {
    CAPTURE(quantised.name);
    const QuantisedMatrix& matrix = quantised.on_host();
    for (const int64_t first : {0, 8, 24, 48}) {
      if (!may_be_cut(matrix, first)) continue;
      const QuantisedMatrix part = rows_of(matrix, first, 16);
      bool same = true;
      for (int64_t r = 0; r < 16; ++r) {
        for (int64_t c = 0; c < matrix.columns; ++c) {
          same = same && weight_value(part, r, c) == weight_value(matrix, first + r, c);
        }
      }
      CHECK((same || !may_be_cut(matrix, 24)));
      if (matrix.codes_as <= WeightCodes::words) CHECK(same);
    }
  }
}

TEST_CASE("cpu code kernels: tables have every code's number, rounded once") {
  std::vector<float> values(256);
  for (uint32_t code = 0; code < 256; ++code) {
    values[code] = fp8_decode<Fp8Format::e4m3fn>(static_cast<uint8_t>(code));
  }
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(cpu_isa_name(isa));
    const CodeKernels& kernels = *cpu_kernels(isa).codes;
    // From scales that give subnormal numbers to scales that give infinities.
    for (int exponent = -140; exponent <= 125; exponent += 5) {
      const float scale = std::ldexp(1.2345678f, exponent);
      for (const float zero : {0.0f, 3.0f}) {
        for (const bool bf16 : {false, true}) {
          CodeTable table;
          kernels.fill(values.data(), zero, scale, bf16, table);
          bool same = true;
          for (size_t code = 0; code < 256; ++code) {
            const float value = (values[code] - zero) * scale;
            const uint16_t expected = bf16 ? bf16_from_float(value) : f16_from_float(value);
            same = same && (table.low[code] | table.high[code] << 8) == expected;
          }
          CHECK(same);
        }
      }
    }
  }
}

}  // namespace fp8kv
