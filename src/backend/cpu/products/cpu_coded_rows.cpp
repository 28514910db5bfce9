#include "backend/cpu/products/cpu_coded_rows.h"

#include <algorithm>
#include <array>

namespace fp8kv {
namespace {

// Rows of scales whose tables are kept: as many as a job's strips have rows.
constexpr int64_t kTabledRows = 64;

bool lies_in_bytes(const QuantisedMatrix& matrix) {
  return matrix.codes_as <= WeightCodes::i8 ||
         (matrix.codes_as == WeightCodes::words && matrix.bits == 8);
}

// Whether the upper half of the codes is the lower half with the other sign.
bool is_mirrored(const QuantisedMatrix& matrix) {
  return matrix.zeros_as == ZeroPoints::none &&
         (matrix.codes_as == WeightCodes::e4m3fn || matrix.codes_as == WeightCodes::e5m2);
}

// Returns the value of each code, before zero points and scales.
const float* values_of(const QuantisedMatrix& matrix) {
  using Values = std::array<float, 256>;
  // Tables of the byte formats, then e2m1, then unsigned numbers.
  static const auto kAll = [] {
    constexpr int kBytes = static_cast<int>(WeightCodes::i8) + 1;
    std::array<Values, kBytes + 2> all{};
    for (uint32_t code = 0; code < 256; ++code) {
      for (int codes = 0; codes < kBytes; ++codes) {
        all[codes][code] = byte_value(static_cast<WeightCodes>(codes), static_cast<uint8_t>(code));
      }
      all[kBytes][code] = e2m1_decode(code);
      all[kBytes + 1][code] = static_cast<float>(code);
    }
    return all;
  }();
  const auto row = std::min(static_cast<size_t>(matrix.codes_as), kAll.size() - 1);
  return kAll[row].data();
}

}  // namespace

bool reads_codes(const QuantisedMatrix& matrix, DType compute) {
  if (compute != DType::bf16 && compute != DType::f16) return false;
  if (matrix.groups != nullptr) return false;
  const bool one_group = matrix.n_groups == 1;
  if (lies_in_bytes(matrix)) {
    const bool whole_words = matrix.codes_as != WeightCodes::words || matrix.columns % 4 == 0;
    return whole_words && (one_group || matrix.block_columns >= kByteStep);
  }
  const bool whole_bytes = matrix.codes_as == WeightCodes::e2m1 && matrix.columns % 2 == 0;
  const bool whole_words =
      matrix.codes_as == WeightCodes::words && matrix.bits == 4 && matrix.columns % 8 == 0;
  const bool even_groups = one_group || matrix.block_columns % 2 == 0;
  return (whole_bytes || whole_words) && even_groups &&
         (one_group || matrix.block_columns >= kNibbleStep);
}

uint16_t* decode_buffer(CodeScratch& scratch, int64_t count) {
  return reinterpret_cast<uint16_t*>(scratch.rows.floats(static_cast<size_t>((count + 1) / 2)));
}

CodedRows::CodedRows(const CpuKernels& kernels, const QuantisedMatrix& matrix, DType compute,
                     CodeScratch& scratch)
    : kernels_(kernels),
      matrix_(matrix),
      scratch_(scratch),
      in_bytes_(lies_in_bytes(matrix)),
      bf16_(compute == DType::bf16),
      values_(values_of(matrix)),
      run_(matrix.n_groups == 1 ? matrix.columns : matrix.block_columns) {
  scratch.tabled.assign(kTabledRows, -1);
}

const uint8_t* CodedRows::codes_of(int64_t row) const {
  const int64_t bytes = in_bytes_ ? matrix_.columns : matrix_.columns / 2;
  return static_cast<const uint8_t*>(matrix_.codes) + row * matrix_.row_stride * bytes;
}

// [n_groups] each
void CodedRows::read_scales(int64_t row, float* scales, float* zeros) const {
  const int64_t n = matrix_.n_groups;
  const bool together = n == 1 || matrix_.group_step == 1;
  const int64_t at = row / matrix_.block_rows * matrix_.row_step;
  if (together && matrix_.scale_dtype != DType::f8_e8m0) {
    const auto bytes = static_cast<int64_t>(dtype_bytes(matrix_.scale_dtype));
    const auto* from = static_cast<const std::byte*>(matrix_.scales) + at * bytes;
    kernels_.to_float[matrix_.scale_dtype](from, n, scales);
    if (matrix_.overall != nullptr) {
      for (int64_t i = 0; i < n; ++i) {
        scales[i] = matrix_.divides ? scales[i] / *matrix_.overall : scales[i] * *matrix_.overall;
      }
    }
  } else {
    for (int64_t i = 0; i < n; ++i) scales[i] = scale_value(matrix_, row, i);
  }
  switch (matrix_.zeros_as) {
    case ZeroPoints::none:
    case ZeroPoints::middle:
      std::fill_n(zeros, n, zero_value(matrix_, row, 0));
      return;
    case ZeroPoints::i8:
      if (together) {
        const auto* from = static_cast<const int8_t*>(matrix_.zeros) + at;
        for (int64_t i = 0; i < n; ++i) zeros[i] = static_cast<float>(from[i]);
        return;
      }
      [[fallthrough]];
    default:
      for (int64_t i = 0; i < n; ++i) zeros[i] = zero_value(matrix_, row, i);
  }
}

// Tables for each group of the row. Rows that share their scales share tables too.
const CodeTable* CodedRows::tables_of(int64_t row) {
  const int64_t n = matrix_.n_groups;
  const bool own_zeros = matrix_.zeros_as == ZeroPoints::words_down;
  const int64_t of = own_zeros ? row : row / matrix_.block_rows, slot = of % kTabledRows;
  constexpr size_t kFloats = sizeof(CodeTable) / sizeof(float);
  const int64_t slots = std::min(kTabledRows, matrix_.rows);
  auto* tables = reinterpret_cast<CodeTable*>(
                     scratch_.tables.floats(static_cast<size_t>(slots * n) * kFloats)) +
                 slot * n;
  int64_t& kept = scratch_.tabled[static_cast<size_t>(slot)];
  if (kept == of) return tables;
  kept = of;
  float* scales = scratch_.scales.floats(static_cast<size_t>(2 * n));
  read_scales(row, scales, scales + n);
  for (int64_t i = 0; i < n; ++i) {
    kernels_.codes->fill(values_, scales[n + i], scales[i], bf16_, tables[i]);
  }
  return tables;
}

void CodedRows::decode(int64_t row, int64_t first, int64_t count, uint16_t* to) {
  const uint8_t* codes = codes_of(row);
  const auto each_run = [&](const auto& work) {
    for (int64_t at = first; at < first + count;) {
      const int64_t group = at / run_, end = std::min(first + count, (group + 1) * run_);
      work(group, at, end - at);
      at = end;
    }
  };
  if (in_bytes_) {
    const CodeTable* tables = tables_of(row);
    return each_run([&](int64_t group, int64_t at, int64_t n) {
      kernels_.codes->bytes(codes + at, n, tables[group], to + at - first);
    });
  }
  const int64_t n_groups = matrix_.n_groups;
  float* scales = scratch_.scales.floats(static_cast<size_t>(2 * n_groups));
  read_scales(row, scales, scales + n_groups);
  each_run([&](int64_t group, int64_t at, int64_t n) {
    kernels_.codes->nibbles(codes + at / 2, n, values_, scales[n_groups + group], scales[group],
                            bf16_, to + at - first);
  });
}

// Kernels for rows of bytes, or null if there are none.
const CodeKernels::ScaledDots* CodedRows::plain_dots() const {
  const auto& dots = bf16_ ? kernels_.codes->plain_dots : kernels_.codes->plain_dots_f16;
  const auto of = [&](PlainBytes bytes) { return dots[static_cast<size_t>(bytes)]; };
  if (matrix_.codes_as == WeightCodes::e4m3fn) return of(PlainBytes::e4m3fn);
  return matrix_.codes_as == WeightCodes::i8 ? of(PlainBytes::i8) : nullptr;
}

bool CodedRows::has_dots() const {
  const CodeKernels& kernels = *kernels_.codes;
  const int64_t step = in_bytes_ ? kByteStep : kNibbleStep;
  if (matrix_.columns % step != 0 || run_ % step != 0) return false;
  if (in_bytes_) return plain_dots() != nullptr || (bf16_ && kernels.byte_dots != nullptr);
  return (bf16_ ? kernels.nibble_dots : kernels.nibble_dots_f16) != nullptr;
}

void CodedRows::dots(const int64_t* rows, const float* x, int64_t x_stride, int64_t n, float* out) {
  const CodeKernels& kernels = *kernels_.codes;
  const CodeKernels::ScaledDots* kernel =
      in_bytes_ ? plain_dots() : (bf16_ ? kernels.nibble_dots : kernels.nibble_dots_f16);
  if (kernel == nullptr) {
    ByteRows four{};
    four.run = run_;
    four.mirrored = is_mirrored(matrix_);
    for (size_t w = 0; w < kDotWeights; ++w) {
      four.codes[w] = codes_of(rows[w]);
      four.tables[w] = tables_of(rows[w]);
    }
    return kernels.byte_dots[n - 1](four, x, x_stride, matrix_.columns, out);
  }
  ScaledRows four{};
  four.values = values_;
  four.run = run_;
  const int64_t n_groups = matrix_.n_groups;
  float* numbers = scratch_.scales.floats(static_cast<size_t>(2 * kDotWeights * n_groups));
  for (size_t w = 0; w < kDotWeights; ++w) {
    float *scales = numbers, *zeros = numbers + n_groups;
    read_scales(rows[w], scales, zeros);
    four.codes[w] = codes_of(rows[w]);
    four.scales[w] = scales;
    four.zeros[w] = zeros;
    numbers = zeros + n_groups;
  }
  kernel[n - 1](four, x, x_stride, matrix_.columns, out);
}

}  // namespace fp8kv
