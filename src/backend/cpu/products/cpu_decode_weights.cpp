#include "backend/cpu/products/cpu_decode_weights.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "backend/cpu/products/cpu_coded_rows.h"
#include "base/error.h"

namespace fp8kv {
namespace {

// Columns at a time, and rows of a job: what is read of a column of words stays in the cache until
// the next row needs its neighbour.
constexpr int64_t kTile = 64;

using Table = std::array<float, 256>;

// The value of each byte, or of each of 16 codes. Words have no table.
Table table_of(WeightCodes codes) {
  Table table{};
  if (codes > WeightCodes::e2m1 && codes != WeightCodes::e2m1_down) return table;
  const bool in_bytes = codes <= WeightCodes::i8;
  for (uint32_t code = 0; code < (in_bytes ? table.size() : 16); ++code) {
    table[code] = in_bytes ? byte_value(codes, static_cast<uint8_t>(code)) : e2m1_decode(code);
  }
  return table;
}

// A part of a row, before zero points and scales.
void read_codes(const QuantisedMatrix& matrix, const Table& table, int64_t r, int64_t first,
                int64_t count, float* to) {
  const int64_t stored_row = r * matrix.row_stride;
  switch (matrix.codes_as) {
    case WeightCodes::e4m3fn:
    case WeightCodes::e4m3fnuz:
    case WeightCodes::e5m2:
    case WeightCodes::e5m2fnuz:
    case WeightCodes::i8: {
      const uint8_t* codes =
          static_cast<const uint8_t*>(matrix.codes) + stored_row * matrix.columns + first;
      for (int64_t i = 0; i < count; ++i) to[i] = table[codes[i]];
      return;
    }
    case WeightCodes::e2m1: {
      const auto* const codes = static_cast<const uint8_t*>(matrix.codes);
      const int64_t before = stored_row * matrix.columns + first;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = before + i;
        to[i] = table[codes[at / 2] >> (at % 2 * 4) & 15];
      }
      return;
    }
    case WeightCodes::e2m1_down: {
      const uint8_t* codes =
          static_cast<const uint8_t*>(matrix.codes) + stored_row / 2 * matrix.columns + first;
      const int64_t shift = stored_row % 2 * 4;
      for (int64_t i = 0; i < count; ++i) to[i] = table[codes[i] >> shift & 15];
      return;
    }
    case WeightCodes::words: {
      const int32_t bits = matrix.bits;
      const int64_t per_word = 32 / bits;
      const int64_t row = stored_row * ((matrix.columns + per_word - 1) / per_word);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t c = first + i;
        to[i] = static_cast<float>(code_in(matrix.codes, row + c / per_word, c % per_word, bits));
      }
      return;
    }
    default:
      for (int64_t i = 0; i < count; ++i) to[i] = code_value(matrix, r, first + i);
  }
}

void weigh(const QuantisedMatrix& matrix, int64_t r, int64_t first, int64_t count, float* values) {
  if (matrix.groups != nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t group = matrix.groups[first + i];
      values[i] = (values[i] - zero_value(matrix, r, group)) * scale_value(matrix, r, group);
    }
    return;
  }
  for (int64_t at = 0; at < count;) {
    const int64_t group = (first + at) / matrix.block_columns;
    const int64_t end = std::min(count, (group + 1) * matrix.block_columns - first);
    const float zero = zero_value(matrix, r, group), scale = scale_value(matrix, r, group);
    for (; at < end; ++at) values[at] = (values[at] - zero) * scale;
  }
}

void round_to(const float* values, int64_t count, const TensorView& to, int64_t at) {
  switch (to.dtype) {
    case DType::f16:
      for (int64_t i = 0; i < count; ++i) to.as<uint16_t>()[at + i] = f16_from_float(values[i]);
      return;
    case DType::bf16:
      for (int64_t i = 0; i < count; ++i) to.as<uint16_t>()[at + i] = bf16_from_float(values[i]);
      return;
    default:
      std::copy(values, values + count, to.as<float>() + at);
  }
}

void decode_rows(const CpuContext& cpu, const QuantisedMatrix& matrix, const TensorView& to) {
  std::vector<CodeScratch> scratch(static_cast<size_t>(cpu.pool.threads()));
  cpu.pool.run((matrix.rows + kTile - 1) / kTile, [&](int64_t job, int thread) {
    CodedRows rows(cpu.kernels, matrix, to.dtype, scratch[static_cast<size_t>(thread)]);
    const int64_t end = std::min((job + 1) * kTile, matrix.rows);
    for (int64_t r = job * kTile; r < end; ++r) {
      rows.decode(r, 0, matrix.columns, to.as<uint16_t>() + r * matrix.columns);
    }
  });
}

}  // namespace

void cpu_decode_weights(const CpuContext& cpu, const QuantisedMatrix& matrix,
                        const TensorView& to) {
  FP8KV_ASSERT(is_compute_dtype(to.dtype) && to.shape.rank() == 2);
  FP8KV_ASSERT(to.shape[0] == matrix.rows && to.shape[1] == matrix.columns);
  if (reads_codes(matrix, to.dtype)) return decode_rows(cpu, matrix, to);
  const Table table = table_of(matrix.codes_as);
  cpu.pool.run((matrix.rows + kTile - 1) / kTile, [&](int64_t job, int /*thread*/) {
    const int64_t end = std::min((job + 1) * kTile, matrix.rows);
    std::array<float, kTile> values;
    for (int64_t first = 0; first < matrix.columns; first += kTile) {
      const int64_t count = std::min(kTile, matrix.columns - first);
      for (int64_t r = job * kTile; r < end; ++r) {
        read_codes(matrix, table, r, first, count, values.data());
        weigh(matrix, r, first, count, values.data());
        round_to(values.data(), count, to, r * matrix.columns + first);
      }
    }
  });
}

}  // namespace fp8kv
