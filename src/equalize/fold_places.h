// The places of the factors of K and Q in a checkpoint: rows of projections and their biases, or
// weights of the norms of Q and K. Which models can take them at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/config.h"

namespace fp8kv {

// One row of a tensor: a row of a matrix, an element of a bias, or a weight of a norm.
struct FoldedRow {
  int64_t row = 0;
  int64_t unit = 0;     // the heads that share exponents: a KV head, or all of the layer
  int64_t channel = 0;  // of the head
  int sign = 1;         // 1: K's factor; -1: its inverse
};

// A tensor with such rows.
struct FoldedTensor {
  std::string name;
  bool is_matrix = false;  // else each row is one element
  bool turned = false;     // its rows are columns of what the file has
  bool plus_one = false;   // the file has the weight less 1
  std::vector<FoldedRow> rows;
};

// Units of a layer with a cache: its KV heads, or 1 where all heads share the weights of a norm.
int64_t fold_units(const ModelConfig& config, int64_t layer);

// All tensors of a layer with a cache that take factors. REQUIRES check_foldable.
std::vector<FoldedTensor> folded_tensors(const Checkpoint& checkpoint, const ModelConfig& config,
                                         int64_t layer);

// Throws for a model that factors of K and Q would change, with the reason and the way out.
void check_foldable(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace fp8kv
