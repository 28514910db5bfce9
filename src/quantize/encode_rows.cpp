#include "quantize/encode_rows.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "core/numbers/fp8.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

float rounded_to(DType dtype, float value) {
  if (dtype == DType::bf16) return bf16_to_float(bf16_from_float(value));
  return dtype == DType::f16 ? f16_to_float(f16_from_float(value)) : value;
}

// The step from 1 to the next number, like torch.finfo(dtype).eps.
float epsilon_of(DType dtype) {
  if (dtype == DType::bf16) return 0x1p-7f;
  return dtype == DType::f16 ? 0x1p-10f : 0x1p-23f;
}

}  // namespace

float weight_scale(float amax, DType dtype) {
  const float scale = rounded_to(dtype, amax / fp8_spec(Fp8Format::e4m3fn).max);
  return scale == 0 ? epsilon_of(dtype) : scale;
}

void store_scale(float value, DType dtype, std::byte* to) {
  const auto put = [&](auto code) { std::memcpy(to, &code, sizeof code); };
  if (dtype == DType::bf16) return put(bf16_from_float(value));
  if (dtype == DType::f16) return put(f16_from_float(value));
  put(value);
}

RowEncoder::RowEncoder(const CpuKernels& kernels, DType dtype, int64_t columns,
                       int64_t block_columns)
    : kernels_(kernels),
      dtype_(dtype),
      columns_(columns),
      block_columns_(block_columns),
      blocks_((columns + block_columns - 1) / block_columns),
      row_(static_cast<size_t>(columns)) {
  FP8KV_ASSERT(is_compute_dtype(dtype) && columns > 0 && block_columns > 0);
}

void RowEncoder::load(const std::byte* row) {
  kernels_.to_float[dtype_](row, columns_, row_.data());
}

void RowEncoder::raise(const std::byte* rows, int64_t n_rows, std::span<uint32_t> amax) {
  const size_t row_bytes = static_cast<size_t>(columns_) * dtype_bytes(dtype_);
  for (int64_t r = 0; r < n_rows; ++r) {
    load(rows + static_cast<size_t>(r) * row_bytes);
    for (int64_t b = 0; b < blocks_; ++b) {
      const int64_t begin = b * block_columns_;
      const int64_t count = std::min(block_columns_, columns_ - begin);
      uint32_t& most = amax[static_cast<size_t>(b)];
      most = kernels_.largest_bits(row_.data() + begin, count, most);
    }
  }
}

void RowEncoder::encode(const std::byte* rows, int64_t n_rows, std::span<const float> scales,
                        std::byte* codes) {
  const size_t row_bytes = static_cast<size_t>(columns_) * dtype_bytes(dtype_);
  for (int64_t r = 0; r < n_rows; ++r) {
    load(rows + static_cast<size_t>(r) * row_bytes);
    for (int64_t b = 0; b < blocks_; ++b) {
      const int64_t begin = b * block_columns_;
      kernels_.divide(row_.data() + begin, std::min(block_columns_, columns_ - begin),
                      scales[static_cast<size_t>(b)]);
    }
    if (dtype_ == DType::bf16) kernels_.round_bf16(row_.data(), columns_);
    if (dtype_ == DType::f16) kernels_.round_f16(row_.data(), columns_);
    kernels_.store[DType::f8_e4m3](row_.data(), columns_, 1.0f, codes + r * columns_);
  }
}

std::optional<int64_t> RowEncoder::find_not_finite(const std::byte* rows, int64_t n_rows) {
  const size_t row_bytes = static_cast<size_t>(columns_) * dtype_bytes(dtype_);
  for (int64_t r = 0; r < n_rows; ++r) {
    load(rows + static_cast<size_t>(r) * row_bytes);
    for (int64_t c = 0; c < columns_; ++c) {
      const uint32_t bits = float_bits(row_[static_cast<size_t>(c)]) & 0x7FFFFFFFu;
      if (bits >= kInfinityBits) return r * columns_ + c;
    }
  }
  return std::nullopt;
}

float RowEncoder::element(const std::byte* rows, int64_t index) const {
  float value = 0;
  kernels_.to_float[dtype_](rows + static_cast<size_t>(index) * dtype_bytes(dtype_), 1, &value);
  return value;
}

}  // namespace fp8kv
