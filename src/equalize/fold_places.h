// Finds where a checkpoint takes the factors of K and Q: rows of projections and biases, or weights
// of the norms of Q and K. A quantised projection takes them in the scales of its rows. Also
// decides which models can take factors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/numbers/dtype.h"

namespace fp8kv {

// One row of a tensor: a row of a matrix or of its scales, an element of a bias, or a weight of a
// norm.
struct FoldedRow {
  int64_t row = 0;
  int64_t unit = 0;     // heads that share exponents: a KV head, or the whole layer
  int64_t channel = 0;  // within the head
  int sign = 1;         // 1: K's factor; -1: its inverse
};

// A tensor with rows that take factors. Row r has elements r * row_step + i * step, i < count.
struct FoldedTensor {
  std::string name;          // of weights, or of the scales of quantised weights
  DType dtype = DType::f32;  // of an element; E8M0 may be stored as U8
  int64_t count = 1;
  int64_t row_step = 1;
  int64_t step = 1;
  bool are_scales = false;
  double overall = 1;     // multiplies all scales
  bool plus_one = false;  // the file stores the weight minus 1
  std::vector<FoldedRow> rows = {};
};

// The units of a layer with a cache: its KV heads, or 1 if all heads share the norm's weights.
int64_t fold_units(const ModelConfig& config, int64_t layer);

// All tensors of a layer with a cache that take factors. REQUIRES check_foldable.
std::vector<FoldedTensor> folded_tensors(const Checkpoint& checkpoint, const ModelConfig& config,
                                         int64_t layer);

// Throws if factors of K and Q would change the model, with the reason and the way out. Names the
// scales that belong to more than one row.
void check_foldable(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace fp8kv
