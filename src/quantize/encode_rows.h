// Weights as codes of E4M3FN with scales, as compressed-tensors computes them.
//
//   scale = amax / 448, rounded to the dtype of the weights; where that is 0, the dtype's epsilon
//   code  = E4M3FN(clamp(weight / scale rounded to that dtype, -448, 448)), to nearest even
//
// Source: compressed-tensors 0.20, calculate_qparams and _quantize (as PyTorch computes them; its
// kernel for GPUs from compute capability 9.0 on does not round the quotient).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/cpu/isa/cpu_kernels.h"
#include "core/dtype.h"

namespace fp8kv {

// Of an f32; those of NaN are above, and those of finite magnitudes below.
inline constexpr uint32_t kInfinityBits = 0x7F800000u;

// The scale of weights of which the largest magnitude is `amax`. REQUIRES a finite amax and a
// compute dtype.
float weight_scale(float amax, DType dtype);

// `value` as `dtype` stores it: what weight_scale gave is stored without loss.
void store_scale(float value, DType dtype, std::byte* to);

// One thread's: it has memory of its own.
class RowEncoder {
 public:
  // Of rows of `columns` elements, of which `block_columns` next to each other share a scale (the
  // last ones of a row may be fewer).
  RowEncoder(const CpuKernels& kernels, DType dtype, int64_t columns, int64_t block_columns);

  // Scales of a row: ceil(columns / block_columns).
  int64_t blocks() const { return blocks_; }

  // Raises amax[blocks()], as the bits of an f32, to those of `rows`. What is infinite or NaN is
  // above all that is finite. `rows` at any alignment.
  void raise(const std::byte* rows, int64_t n_rows, std::span<uint32_t> amax);
  // codes[n_rows][columns]. REQUIRES scales[blocks()] of weight_scale.
  void encode(const std::byte* rows, int64_t n_rows, std::span<const float> scales,
              std::byte* codes);
  // The first element that is infinite or NaN.
  std::optional<int64_t> find_not_finite(const std::byte* rows, int64_t n_rows);
  // As it is, for messages.
  float element(const std::byte* rows, int64_t index) const;

 private:
  // As f32, in row_.
  void load(const std::byte* row);

  const CpuKernels& kernels_;
  DType dtype_;
  int64_t columns_;
  int64_t block_columns_;
  int64_t blocks_;
  std::vector<float> row_;
};

}  // namespace fp8kv
