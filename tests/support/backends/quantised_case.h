// A matrix of random codes in each form of stored quantised weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/model/quantised_matrix.h"

namespace fp8kv::test {

struct QuantisedCase {
  std::string name;
  QuantisedMatrix matrix;  // without pointers
  // The memory that the pointers point to; empty if the form has none.
  std::vector<uint32_t> codes, scales, zeros, groups, overall;

  const QuantisedMatrix& on_host() {
    matrix.codes = codes.data();
    matrix.scales = scales.data();
    matrix.zeros = zeros.empty() ? nullptr : zeros.data();
    matrix.groups = groups.empty() ? nullptr : reinterpret_cast<const int32_t*>(groups.data());
    matrix.overall = overall.empty() ? nullptr : reinterpret_cast<const float*>(overall.data());
    return matrix;
  }
};

inline std::vector<std::byte> decoded_on_host(const QuantisedMatrix& matrix, DType dtype) {
  std::vector<std::byte> out;
  const auto append = [&](const auto& code) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&code);
    out.insert(out.end(), bytes, bytes + sizeof(code));
  };
  for (int64_t r = 0; r < matrix.rows; ++r) {
    for (int64_t c = 0; c < matrix.columns; ++c) {
      const float value = weight_value(matrix, r, c);
      if (dtype == DType::f32) append(value);
      if (dtype == DType::f16) append(f16_from_float(value));
      if (dtype == DType::bf16) append(bf16_from_float(value));
    }
  }
  return out;
}

// Sizes are not multiples of a loop's step, as far as the form allows.
inline std::vector<QuantisedCase> quantised_cases() {
  std::vector<QuantisedCase> cases;
  Rng rng(5);
  const auto random = [&](int64_t bytes) {
    std::vector<uint32_t> words(static_cast<size_t>((bytes + 3) / 4));
    for (uint32_t& word : words) word = static_cast<uint32_t>(rng.next());
    return words;
  };
  // Ordinary f32 scales.
  const auto scales_f32 = [&](int64_t count) {
    std::vector<uint32_t> words(static_cast<size_t>(count));
    for (uint32_t& word : words) {
      word = float_bits(0.001f * static_cast<float>(1 + rng.next() % 1000));
    }
    return words;
  };
  const auto scales_16 = [&](int64_t count, bool bf16) {
    std::vector<uint32_t> words(static_cast<size_t>((count + 1) / 2));
    for (uint32_t& word : words) {
      for (int half = 0; half < 2; ++half) {
        const float value = 0.001f * static_cast<float>(1 + rng.next() % 1000);
        word = word << 16 | (bf16 ? bf16_from_float(value) : f16_from_float(value));
      }
    }
    return words;
  };
  const auto add = [&](const char* name, int64_t rows, int64_t columns) -> QuantisedCase& {
    QuantisedCase& made = cases.emplace_back();
    made.name = name;
    made.matrix.rows = rows;
    made.matrix.columns = columns;
    made.matrix.block_columns = columns;
    return made;
  };
  // [rows / block_rows, groups]
  const auto by_blocks = [](QuantisedMatrix& matrix, int64_t block_rows, int64_t block_columns) {
    matrix.block_rows = block_rows;
    matrix.block_columns = block_columns;
    matrix.n_groups = (matrix.columns + block_columns - 1) / block_columns;
    matrix.row_step = matrix.n_groups;
    matrix.group_step = 1;
    return (matrix.rows + block_rows - 1) / block_rows * matrix.n_groups;
  };
  for (const WeightCodes codes :
       {WeightCodes::e4m3fn, WeightCodes::e4m3fnuz, WeightCodes::e5m2fnuz, WeightCodes::i8}) {
    QuantisedCase& bytes = add("bytes, a scale for each block", 70, 133);
    bytes.matrix.codes_as = codes;
    bytes.codes = random(70 * 133);
    // Masks out NaN and infinity, whose bits are not unique.
    for (uint32_t& word : bytes.codes) word &= 0x3F3F3F3Fu;
    bytes.scales = scales_f32(by_blocks(bytes.matrix, 24, 20));
  }
  QuantisedCase& by_row = add("int8, a scale and a zero point for each row", 65, 67);
  by_row.matrix.codes_as = WeightCodes::i8;
  by_row.codes = random(65 * 67);
  by_row.matrix.row_step = 1;
  by_row.matrix.scale_dtype = DType::bf16;
  by_row.scales = scales_16(65, true);
  by_row.matrix.zeros_as = ZeroPoints::i8;
  by_row.zeros = random(65);
  for (const bool divides : {false, true}) {
    QuantisedCase& nv = add("nvfp4", 66, 96);
    nv.matrix.codes_as = WeightCodes::e2m1;
    nv.matrix.bits = 4;
    nv.codes = random(66 * 48);
    nv.matrix.scale_dtype = DType::f8_e4m3;
    nv.scales = random(by_blocks(nv.matrix, 1, 16));
    for (uint32_t& word : nv.scales) word &= 0x7E7E7E7Eu;
    nv.overall = {float_bits(0.37f)};
    nv.matrix.divides = divides;
  }
  QuantisedCase& down = add("nvfp4 down columns", 96, 67);
  down.matrix.codes_as = WeightCodes::e2m1_down;
  down.matrix.bits = 4;
  down.codes = random(48 * 67);
  down.matrix.scale_dtype = DType::f8_e4m3;
  down.scales = random(by_blocks(down.matrix, 16, 1));
  for (uint32_t& word : down.scales) word &= 0x7E7E7E7Eu;
  down.overall = {float_bits(0.37f)};
  QuantisedCase& mx = add("mxfp4", 66, 96);
  mx.matrix.codes_as = WeightCodes::e2m1;
  mx.matrix.bits = 4;
  mx.codes = random(66 * 48);
  mx.matrix.scale_dtype = DType::f8_e8m0;
  mx.scales = random(by_blocks(mx.matrix, 1, 32));
  for (uint32_t& word : mx.scales) word = (word & 0x1F1F1F1Fu) + 0x70707070u;
  for (const int32_t bits : {4, 8}) {
    QuantisedCase& packed = add("words along rows, zero points, groups in any order", 72, 70);
    packed.matrix.codes_as = WeightCodes::words;
    packed.matrix.bits = bits;
    packed.codes = random(72 * ((70 * bits + 31) / 32) * 4);
    packed.matrix.scale_dtype = DType::f16;
    packed.scales = scales_16(by_blocks(packed.matrix, 1, 14), false);
    packed.matrix.zeros_as = bits == 4 ? ZeroPoints::words_down : ZeroPoints::middle;
    if (bits == 4) packed.zeros = random(72 / 8 * 5 * 4);
    for (uint32_t c = 0; bits == 4 && c < 70; ++c) packed.groups.push_back(c * 3 % 5);

    QuantisedCase& gptq = add("words along columns", 72, 80);
    gptq.matrix.codes_as = WeightCodes::words_down;
    gptq.matrix.bits = bits;
    gptq.codes = random(72 * 80 * bits / 8);
    gptq.matrix.block_columns = 16;
    gptq.matrix.n_groups = 5;
    gptq.matrix.row_step = 1;
    gptq.matrix.group_step = 72;
    gptq.matrix.scale_dtype = DType::f16;
    gptq.scales = scales_16(5 * 72, false);
    gptq.matrix.zeros_as = ZeroPoints::words;
    gptq.matrix.zero_add = bits == 4 ? 1 : 0;
    gptq.zeros = random(5 * 72 * bits / 8);
    for (uint32_t c = 0; bits == 4 && c < 80; ++c) gptq.groups.push_back(c * 7 % 5);
  }
  QuantisedCase& awq = add("words in AWQ's order", 72, 80);
  awq.matrix.codes_as = WeightCodes::words_shuffled;
  awq.matrix.bits = 4;
  awq.codes = random(72 * 80 / 2);
  awq.matrix.block_columns = 16;
  awq.matrix.n_groups = 5;
  awq.matrix.row_step = 1;
  awq.matrix.group_step = 72;
  awq.matrix.scale_dtype = DType::f16;
  awq.scales = scales_16(5 * 72, false);
  awq.matrix.zeros_as = ZeroPoints::words_shuffled;
  awq.zeros = random(5 * 72 / 2);
  return cases;
}

}  // namespace fp8kv::test
