// Which tensors of a model become FP8, and which are left alone.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/config.h"

namespace fp8kv {

struct LinearChoice {
  std::set<std::string> quantised;  // tensors, by name
  // Modules with a matrix that are left alone, as an `ignore` list of compressed-tensors: lm_head,
  // whether it has a tensor or not, routers, and projections of the embedding; parts that are not
  // the language model's as patterns of their names.
  std::vector<std::string> ignore;
};

// Attention's and feed-forward matrices, those of experts too. Throws for matrices in a layout that
// no runtime reads in FP8: experts in one tensor, rows as columns. REQUIRES the config that
// read_model_config gave, of a model whose weights are plain numbers.
LinearChoice choose_linears(const Checkpoint& checkpoint, const ModelConfig& config);

// Throws unless the weights of the checkpoint are plain numbers.
void check_unquantised(const Checkpoint& checkpoint);

}  // namespace fp8kv
