// Chooses the tensors of a model that become FP8, and those that stay as they are.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// A matrix that a tensor with all experts is split into.
struct SplitMatrix {
  std::string name;
  int64_t first_row = 0;  // in the tensor [experts, rows, columns], counted over all experts
  Shape shape;
};

struct LinearChoice {
  std::set<std::string> quantised;  // matrices, by the names that they are written with
  // Tensors that hold the rows of all experts, and the matrices that they are split into.
  std::map<std::string, std::vector<SplitMatrix>> split;
  // The unquantised modules with a matrix, as an `ignore` list of compressed-tensors. It has
  // lm_head (even without a tensor), routers, and projections of the embedding. Parts outside the
  // language model appear as patterns of their names.
  std::vector<std::string> ignore;
};

// The model as it will be written. Experts that share one tensor get tensors of their own, with the
// names that llm-compressor gives them and runtimes read.
ModelConfig written_config(const ModelConfig& config);

// Chooses the matrices of attention and feed-forward layers, with those of experts. Throws for
// layouts that no runtime reads in FP8: rows stored as columns, or experts in one tensor if the
// family has no names for separate ones.
// REQUIRES the config from read_model_config, and weights that are plain numbers.
LinearChoice choose_linears(const Checkpoint& checkpoint, const ModelConfig& config);

// Throws unless the weights of the checkpoint are plain numbers.
void check_unquantised(const Checkpoint& checkpoint);

}  // namespace fp8kv
