// Encodes weights as E4M3FN codes with scales, with the arithmetic of compressed-tensors.
//
//   scale = amax / 448, rounded to the dtype of the weights; where that is 0, the dtype's epsilon
//   code  = E4M3FN(clamp(weight / scale rounded to that dtype, -448, 448)), to nearest even
//
// Source: compressed-tensors 0.20, calculate_qparams and _quantize, as PyTorch computes them. Its
// kernel for GPUs from compute capability 9.0 on does not round the quotient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "core/numbers/dtype.h"

namespace fp8kv {

// The bits of infinity in F32. NaNs have larger bits, finite magnitudes smaller ones.
inline constexpr uint32_t kInfinityBits = 0x7F800000u;

// The scale of weights whose largest magnitude is `amax`. REQUIRES a finite amax and a compute
// dtype.
float weight_scale(float amax, DType dtype);

// Stores `value` as `dtype`. Values from weight_scale are stored without loss.
void store_scale(float value, DType dtype, std::byte* to);

// Encodes the rows of matrices. Has memory of its own, so each thread needs its own encoder.
class RowEncoder {
 public:
  // For rows of `columns` elements. Blocks of `block_columns` neighbours share a scale; the last
  // block of a row may be shorter.
  RowEncoder(const CpuKernels& kernels, DType dtype, int64_t columns, int64_t block_columns);

  // The number of scales in a row: ceil(columns / block_columns).
  int64_t blocks() const { return blocks_; }

  // Raises amax[blocks()], as F32 bits, to the magnitudes of `rows`. Infinity and NaN count as
  // larger than all finite values. `rows` may have any alignment.
  void raise(const std::byte* rows, int64_t n_rows, std::span<uint32_t> amax);
  // Writes codes[n_rows][columns]. REQUIRES scales[blocks()] from weight_scale.
  void encode(const std::byte* rows, int64_t n_rows, std::span<const float> scales,
              std::byte* codes);
  // The index of the first element that is infinite or NaN.
  std::optional<int64_t> find_not_finite(const std::byte* rows, int64_t n_rows);
  // The unscaled value of an element, for messages.
  float element(const std::byte* rows, int64_t index) const;

 private:
  // Converts a row to F32, into row_.
  void load(const std::byte* row);

  const CpuKernels& kernels_;
  DType dtype_;
  int64_t columns_;
  int64_t block_columns_;
  int64_t blocks_;
  std::vector<float> row_;
};

}  // namespace fp8kv
