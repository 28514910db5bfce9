// What the tensors of a model are called, as rows of a table: data that each architecture gives.
#pragma once

#include <string_view>
#include <vector>

namespace fp8kv {

// What a tensor is to the forward pass, in the order in which a layer uses them.
enum class TensorRole {
  embedding,
  attn_norm,
  q,
  k,
  v,
  q_norm,
  k_norm,
  o,
  attn_post_norm,
  ffn_norm,
  gate,
  up,
  down,
  router,       // of a layer with experts, as are those below
  choice_bias,  // see ExpertsConfig; its name in the file is the row's, without ".bias"
  expert_gate,  // a tensor of each expert, or one of all together: [experts, rows, columns]
  expert_up,
  expert_down,
  shared_gate,  // of the expert that takes every token
  shared_up,
  shared_down,
  shared_router,  // what its output is multiplied by is the sigmoid of this product
  ffn_post_norm,
  norm,
  lm_head,
};

struct TensorRow {
  // Without ".weight" and ".bias"; "{}" stands for the number of the layer, "{e}" for that of the
  // expert.
  std::string_view name;
  // Mostly one. A tensor with several has the rows of the first, then those of the second, ...
  std::vector<TensorRole> roles;
};

}  // namespace fp8kv
