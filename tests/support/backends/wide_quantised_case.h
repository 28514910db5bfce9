// Matrices in the forms of quantisers, with models' sizes of rows and groups. Products read them in
// place.
#pragma once

#include <vector>

#include "support/backends/quantised_case.h"

namespace fp8kv::test {

inline constexpr int64_t kWideRows = 72, kWideColumns = 256;

inline std::vector<QuantisedCase> wide_quantised_cases() {
  std::vector<QuantisedCase> cases;
  Rng rng(7);
  const auto random = [&](int64_t bytes, uint32_t mask = 0xFFFFFFFFu) {
    std::vector<uint32_t> words(static_cast<size_t>((bytes + 3) / 4));
    for (uint32_t& word : words) word = static_cast<uint32_t>(rng.next()) & mask;
    return words;
  };
  // Scales from ordinary ones down to those whose products are subnormal.
  const auto scales = [&](int64_t count, DType dtype) {
    std::vector<uint32_t> words;
    for (int64_t i = 0; i < count; ++i) {
      const float tiny = dtype == DType::f16 ? 0x1p-14f : 0x1p-128f;
      const float value =
          rng.next() % 9 == 0 ? tiny : 0.001f * static_cast<float>(1 + rng.next() % 999);
      if (dtype == DType::f32) {
        words.push_back(float_bits(value));
      } else {
        const uint32_t code = dtype == DType::f16 ? f16_from_float(value) : bf16_from_float(value);
        if (i % 2 == 0) words.push_back(0);
        words.back() |= code << (i % 2 * 16);
      }
    }
    return words;
  };
  const auto add = [&](const char* name, WeightCodes codes, int32_t bits, int64_t block_rows,
                       int64_t block_columns, DType dtype) -> QuantisedCase& {
    QuantisedCase& made = cases.emplace_back();
    made.name = name;
    QuantisedMatrix& matrix = made.matrix;
    matrix.codes_as = codes;
    matrix.bits = bits;
    matrix.rows = kWideRows;
    matrix.columns = kWideColumns;
    matrix.block_rows = block_rows;
    matrix.block_columns = block_columns;
    matrix.n_groups = (kWideColumns + block_columns - 1) / block_columns;
    matrix.row_step = block_rows == kWideRows ? 0 : matrix.n_groups;
    matrix.group_step = matrix.n_groups == 1 ? 0 : 1;
    matrix.scale_dtype = dtype;
    const uint32_t not_nan = codes == WeightCodes::e4m3fn ? 0xBFBFBFBFu
                             : codes < WeightCodes::i8    ? 0x3F3F3F3Fu
                                                          : 0xFFFFFFFFu;
    made.codes = random(kWideRows * kWideColumns * bits / 8, not_nan);
    made.scales = scales((kWideRows + block_rows - 1) / block_rows * matrix.n_groups, dtype);
    return made;
  };
  add("fp8, one scale", WeightCodes::e4m3fn, 8, kWideRows, kWideColumns, DType::f32);
  add("fp8, a scale for each row", WeightCodes::e4m3fn, 8, 1, kWideColumns, DType::bf16);
  add("fp8, blocks", WeightCodes::e4m3fn, 8, 24, 128, DType::f32);
  add("fp8, blocks that end early", WeightCodes::e4m3fn, 8, 48, 192, DType::f32);
  add("fp8 e5m2", WeightCodes::e5m2, 8, 1, kWideColumns, DType::f16);
  add("fp8 fnuz", WeightCodes::e4m3fnuz, 8, 1, kWideColumns, DType::f32);
  QuantisedCase& int8 = add("int8 and zero points", WeightCodes::i8, 8, 1, 128, DType::bf16);
  int8.matrix.zeros_as = ZeroPoints::i8;
  int8.zeros = random(kWideRows * 2);
  for (const int32_t bits : {4, 8}) {
    QuantisedCase& packed = add("words along rows", WeightCodes::words, bits, 1, 128, DType::bf16);
    packed.matrix.zeros_as = ZeroPoints::middle;
    QuantisedCase& uneven =
        add("words along rows, zero points", WeightCodes::words, bits, 1, 64, DType::f16);
    uneven.matrix.zeros_as = ZeroPoints::words_down;
    uneven.zeros = random(kWideRows * bits / 8 * uneven.matrix.n_groups);

    QuantisedCase& gptq =
        add("words along columns", WeightCodes::words_down, bits, 1, 64, DType::f16);
    gptq.matrix.row_step = 1;
    gptq.matrix.group_step = kWideRows;
    gptq.matrix.zeros_as = ZeroPoints::words;
    gptq.matrix.zero_add = 1;
    gptq.zeros = random(gptq.matrix.n_groups * kWideRows * bits / 8);
    for (uint32_t c = 0; c < kWideColumns; ++c) gptq.groups.push_back(c / 64);
  }
  QuantisedCase& awq = add("AWQ", WeightCodes::words_shuffled, 4, 1, 128, DType::f16);
  awq.matrix.row_step = 1;
  awq.matrix.group_step = kWideRows;
  awq.matrix.zeros_as = ZeroPoints::words_shuffled;
  awq.zeros = random(awq.matrix.n_groups * kWideRows / 2);
  QuantisedCase& mx = add("mxfp4", WeightCodes::e2m1, 4, 1, 32, DType::f8_e8m0);
  mx.scales = random(kWideRows * 8, 0x1F1F1F1Fu);
  for (uint32_t& word : mx.scales) word += 0x70707070u;
  QuantisedCase& nv =
      add("fp4, long groups and a number for all", WeightCodes::e2m1, 4, 1, 64, DType::f8_e4m3);
  nv.scales = random(kWideRows * 4, 0x3E3E3E3Eu);
  nv.overall = {float_bits(0.37f)};
  nv.matrix.divides = true;
  return cases;
}

inline std::vector<QuantisedCase> all_quantised_cases() {
  std::vector<QuantisedCase> cases = quantised_cases();
  for (QuantisedCase& each : wide_quantised_cases()) cases.push_back(std::move(each));
  return cases;
}

}  // namespace fp8kv::test
