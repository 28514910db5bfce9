// A weight matrix stored in fewer bits than it is computed with: where its codes and scales lie,
// and how to decode an element.
//
//   weight[r][c] = (code - zero point) * scale,   in f32, rounded once to the compute dtype
//
// Source: compressed-tensors 0.12 to 0.18 (pack_quantized, nvfp4, mxfp4, naive), AutoGPTQ and
// GPTQModel, AutoAWQ, ModelOpt 0.47; OCP Microscaling Formats 1.0 (e2m1, e8m0).
#pragma once

#include <cstdint>

#include "core/numbers/dtype.h"
#include "core/numbers/e2m1.h"
#include "core/numbers/fp8.h"
#include "core/numbers/half.h"
#include "core/numbers/hd.h"

namespace fp8kv {

// The layouts of codes. A word has 32 bits and n = 32 / bits codes, the first in the lowest bits.
enum class WeightCodes : uint8_t {
  e4m3fn,  // [rows, columns] of one byte; so are the next four
  e4m3fnuz,
  e5m2,
  e5m2fnuz,
  i8,
  e2m1,            // [rows, columns / 2] bytes of two codes, the first in the low bits
  words,           // [rows, ceil(columns / n)], words run along a row: compressed-tensors
  words_down,      // [columns / n, rows], words run down a column: GPTQ
  words_shuffled,  // [columns, rows / 8] of 4-bit codes, rows in the order 0 2 4 6 1 3 5 7: AWQ
  e2m1_down  // [rows / 2, columns] bytes of two, upper row in the low bits: ModelOpt's experts
};

enum class ZeroPoints : uint8_t {
  none,
  middle,         // 2^(bits - 1) for all
  i8,             // one byte beside each scale
  words_down,     // words of `bits`-bit numbers, [ceil(rows / n), groups]: compressed-tensors
  words,          // [groups, rows / n]: GPTQ
  words_shuffled  // [groups, rows / 8]: AWQ
};

// All pointers are to memory of the device that computes with the matrix.
struct QuantisedMatrix {
  WeightCodes codes_as = WeightCodes::e4m3fn;
  ZeroPoints zeros_as = ZeroPoints::none;
  DType scale_dtype = DType::f32;  // f32, f16, bf16, f8_e4m3 or f8_e8m0
  int32_t bits = 8;
  int32_t zero_add = 0;  // added to stored zero points: 1 in GPTQ's first form, which wraps
  bool divides = false;  // `overall` divides each scale instead of multiplying it
  int64_t rows = 0;
  int64_t columns = 0;
  // The distance between neighbouring rows, in rows of codes. It is more than 1 if rows of other
  // matrices lie between. REQUIRES codes along rows.
  int64_t row_stride = 1;
  // How scales are shared. Element (r, c) has scales[r / block_rows * row_step + group *
  // group_step], where group is c / block_columns, or groups[c] if `groups` is set.
  int64_t block_rows = 1;
  int64_t block_columns = 1;
  int64_t row_step = 0;
  int64_t group_step = 0;
  int64_t n_groups = 1;
  const void* codes = nullptr;
  const void* scales = nullptr;
  const void* zeros = nullptr;      // null if `zeros_as` stores none
  const int32_t* groups = nullptr;  // [columns]; null: column / block_columns
  const float* overall = nullptr;   // one number for the whole matrix; null: none
};

// 2^(code - 127); 255 is NaN.
FP8KV_HD float e8m0_decode(uint32_t code) {
  if (code == 255) return float_from_bits(0x7FC00000u);
  return code == 0 ? float_from_bits(0x00400000u) : float_from_bits(code << 23);
}

// Extracts one code of `bits` bits from an array of words with 32 / bits codes each.
FP8KV_HD uint32_t code_in(const void* words, int64_t word, int64_t place, int32_t bits) {
  const uint32_t mask = (1u << bits) - 1u;
  return static_cast<const uint32_t*>(words)[word] >> (place * bits) & mask;
}

// AWQ's place within a word for row `row` of eight.
FP8KV_HD int64_t shuffled_place(int64_t row) {
  return row % 2 == 0 ? row / 2 : 4 + row / 2;
}

// The value of a one-byte code. REQUIRES one of the first five layouts.
FP8KV_HD float byte_value(WeightCodes codes, uint8_t byte) {
  switch (codes) {
    case WeightCodes::e4m3fn:
      return fp8_decode<Fp8Format::e4m3fn>(byte);
    case WeightCodes::e4m3fnuz:
      return fp8_decode<Fp8Format::e4m3fnuz>(byte);
    case WeightCodes::e5m2:
      return fp8_decode<Fp8Format::e5m2>(byte);
    case WeightCodes::e5m2fnuz:
      return fp8_decode<Fp8Format::e5m2fnuz>(byte);
    default:
      return static_cast<float>(static_cast<int8_t>(byte));
  }
}

// The value of the stored code, before its zero point is subtracted.
FP8KV_HD float code_value(const QuantisedMatrix& matrix, int64_t r, int64_t c) {
  const int64_t per_word = 32 / matrix.bits;
  const int64_t row = r * matrix.row_stride, at = row * matrix.columns + c;
  const auto* const bytes = static_cast<const uint8_t*>(matrix.codes);
  int64_t word = 0, place = 0;
  switch (matrix.codes_as) {
    case WeightCodes::e2m1:
      return e2m1_decode(bytes[at / 2] >> (at % 2 * 4) & 15u);
    case WeightCodes::e2m1_down:
      return e2m1_decode(bytes[row / 2 * matrix.columns + c] >> (row % 2 * 4) & 15u);
    case WeightCodes::words:
      word = row * ((matrix.columns + per_word - 1) / per_word) + c / per_word;
      place = c % per_word;
      break;
    case WeightCodes::words_down:
      word = c / per_word * matrix.rows + r;
      place = c % per_word;
      break;
    case WeightCodes::words_shuffled:
      word = c * (matrix.rows / 8) + r / 8;
      place = shuffled_place(r % 8);
      break;
    default:
      return byte_value(matrix.codes_as, bytes[at]);
  }
  return static_cast<float>(code_in(matrix.codes, word, place, matrix.bits));
}

FP8KV_HD int64_t group_of(const QuantisedMatrix& matrix, int64_t c) {
  return matrix.groups != nullptr ? matrix.groups[c] : c / matrix.block_columns;
}

FP8KV_HD float zero_value(const QuantisedMatrix& matrix, int64_t r, int64_t group) {
  const int64_t per_word = 32 / matrix.bits;
  uint32_t code = 0;
  switch (matrix.zeros_as) {
    case ZeroPoints::none:
      return 0.0f;
    case ZeroPoints::middle:
      return static_cast<float>(1 << (matrix.bits - 1));
    case ZeroPoints::i8:
      return static_cast<float>(static_cast<const int8_t*>(
          matrix.zeros)[r / matrix.block_rows * matrix.row_step + group * matrix.group_step]);
    case ZeroPoints::words_down:
      code =
          code_in(matrix.zeros, r / per_word * matrix.n_groups + group, r % per_word, matrix.bits);
      break;
    case ZeroPoints::words:
      code = code_in(matrix.zeros, group * (matrix.rows / per_word) + r / per_word, r % per_word,
                     matrix.bits);
      break;
    case ZeroPoints::words_shuffled:
      code = code_in(matrix.zeros, group * (matrix.rows / 8) + r / 8, shuffled_place(r % 8), 4);
      break;
  }
  const uint32_t mask = (1u << matrix.bits) - 1u;
  return static_cast<float>((code + static_cast<uint32_t>(matrix.zero_add)) & mask);
}

FP8KV_HD float scale_value(const QuantisedMatrix& matrix, int64_t r, int64_t group) {
  const int64_t at = r / matrix.block_rows * matrix.row_step + group * matrix.group_step;
  float scale = 0.0f;
  switch (matrix.scale_dtype) {
    case DType::f16:
      scale = f16_to_float(static_cast<const uint16_t*>(matrix.scales)[at]);
      break;
    case DType::bf16:
      scale = bf16_to_float(static_cast<const uint16_t*>(matrix.scales)[at]);
      break;
    case DType::f8_e4m3:
      scale = fp8_decode<Fp8Format::e4m3fn>(static_cast<const uint8_t*>(matrix.scales)[at]);
      break;
    case DType::f8_e8m0:
      scale = e8m0_decode(static_cast<const uint8_t*>(matrix.scales)[at]);
      break;
    default:
      scale = static_cast<const float*>(matrix.scales)[at];
  }
  if (matrix.overall == nullptr) return scale;
  return matrix.divides ? scale / *matrix.overall : scale * *matrix.overall;
}

// The value of one weight.
FP8KV_HD float weight_value(const QuantisedMatrix& matrix, int64_t r, int64_t c) {
  const int64_t group = group_of(matrix, c);
  return (code_value(matrix, r, c) - zero_value(matrix, r, group)) * scale_value(matrix, r, group);
}

// The matrix of rows [first, first + count). REQUIRES codes along rows, and that `first` begins a
// block or all rows lie in one block.
inline QuantisedMatrix rows_of(const QuantisedMatrix& matrix, int64_t first, int64_t count) {
  const auto skip = [](const void* from, int64_t bytes) {
    return from == nullptr ? nullptr
                           : static_cast<const void*>(static_cast<const char*>(from) + bytes);
  };
  const int64_t per_word = 32 / matrix.bits, before = first * matrix.row_stride;
  QuantisedMatrix part = matrix;
  part.rows = count;
  switch (matrix.codes_as) {
    case WeightCodes::e2m1:
      part.codes = skip(matrix.codes, before * matrix.columns / 2);
      break;
    case WeightCodes::words:
      part.codes = skip(matrix.codes, before * ((matrix.columns + per_word - 1) / per_word) * 4);
      break;
    default:
      part.codes = skip(matrix.codes, before * matrix.columns);
  }
  const int64_t scales = first / matrix.block_rows * matrix.row_step;
  part.scales = skip(matrix.scales, scales * static_cast<int64_t>(dtype_bytes(matrix.scale_dtype)));
  switch (matrix.zeros_as) {
    case ZeroPoints::i8:
      part.zeros = skip(matrix.zeros, scales);
      break;
    case ZeroPoints::words_down:
      part.zeros = skip(matrix.zeros, first / per_word * matrix.n_groups * 4);
      break;
    default:
      break;
  }
  return part;
}

// Whether every_row can pick rows that are not neighbours from this matrix.
inline bool may_be_sorted(const QuantisedMatrix& matrix) {
  return matrix.codes_as <= WeightCodes::words && matrix.block_rows == 1 &&
         matrix.zeros_as != ZeroPoints::words_down;
}

// The matrix of rows first, first + step and so on. REQUIRES may_be_sorted, and that `step` divides
// the number of rows.
inline QuantisedMatrix every_row(const QuantisedMatrix& matrix, int64_t first, int64_t step) {
  QuantisedMatrix part = rows_of(matrix, first, matrix.rows / step);
  part.row_stride *= step;
  part.row_step *= step;
  return part;
}

// Whether rows_of can cut the matrix before this row.
inline bool may_be_cut(const QuantisedMatrix& matrix, int64_t row) {
  const bool at_word = matrix.zeros_as != ZeroPoints::words_down || row % (32 / matrix.bits) == 0;
  const bool along_rows = matrix.codes_as <= WeightCodes::words;
  return row == 0 || (along_rows && at_word && row % matrix.block_rows == 0);
}

}  // namespace fp8kv
