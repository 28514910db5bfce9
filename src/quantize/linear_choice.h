// Which tensors of a model become FP8, and which are left alone.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "core/tensor.h"

namespace fp8kv {

// Rows of a tensor that become a matrix of their own.
struct RowsApart {
  std::string name;
  int64_t first_row = 0;  // of the tensor [experts, rows, columns], counted through all experts
  Shape shape;
};

struct LinearChoice {
  std::set<std::string> quantised;  // matrices, by the names that they are written with
  // Tensors with the rows of all experts of a layer, and what they are taken apart to.
  std::map<std::string, std::vector<RowsApart>> apart;
  // Modules with a matrix that are left alone, as an `ignore` list of compressed-tensors: lm_head,
  // whether it has a tensor or not, routers, and projections of the embedding; parts that are not
  // the language model's as patterns of their names.
  std::vector<std::string> ignore;
};

// The model as it is written: experts that lie in one tensor one after another have tensors of
// their own, with the names that llm-compressor gives them and runtimes read.
ModelConfig written_config(const ModelConfig& config);

// Attention's and feed-forward matrices, those of experts too. Throws for matrices in a layout that
// no runtime reads in FP8: rows as columns, experts in one tensor where the family has no names for
// experts apart. REQUIRES the config that read_model_config gave, of a model whose weights are
// plain numbers.
LinearChoice choose_linears(const Checkpoint& checkpoint, const ModelConfig& config);

// Throws unless the weights of the checkpoint are plain numbers.
void check_unquantised(const Checkpoint& checkpoint);

}  // namespace fp8kv
