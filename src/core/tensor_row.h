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
  ffn_post_norm,
  norm,
  lm_head,
};

struct TensorRow {
  // Without ".weight" and ".bias"; "{}" stands for the number of the layer.
  std::string_view name;
  // Mostly one. A tensor with several has the rows of the first, then those of the second, ...
  std::vector<TensorRole> roles;
};

}  // namespace fp8kv
