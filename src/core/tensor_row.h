// What the tensors of a model are called, as rows of a table: data that each architecture gives.
#pragma once

#include <string_view>
#include <vector>

namespace fp8kv {

// What a tensor is to the forward pass, in the order in which a layer uses them.
enum class TensorRole {
  embedding,
  embed_up,   // [dim, embed_dim], of models whose embedding has rows of another size
  positions,  // a row for each position, added to the embedding of the token there
  // Of models whose layers have inputs of their own, see ModelConfig::layer_input_dim.
  layer_embedding,
  layer_projection,
  layer_projection_norm,
  stream_in,  // of models with several streams: from the embedding to each but the first
  attn_norm,
  stream_norm,     // this and the next two: what a layer's active stream will be is made with
  stream_router,   // [streams, dim]
  stream_predict,  // [streams * streams, streams]
  q,
  k,
  v,
  attn_gate,  // what attention gives is multiplied by the sigmoid of this product
  q_down,     // of latent attention, as are those up to v_up: what Q is made of
  q_down_norm,
  latent,  // what K and V are made of
  k_rope,  // what of K is rotated, the same for all heads
  latent_norm,
  k_up,  // for each head from the latent to K, but for what is rotated
  v_up,
  q_norm,
  k_norm,
  sinks,  // [n_heads]
  o,
  state_q,  // this and those to state_out of layers that keep a state; see RecurrenceConfig
  state_k,
  state_v,
  state_gate,
  state_step,
  state_strength,
  conv_q,  // a row for each channel
  conv_k,
  conv_v,
  state_decay,
  state_step_bias,
  state_skip,
  state_norm,
  state_out,
  laurel_down,  // [laurel_rank, dim]
  laurel_up,
  laurel_norm,
  attn_post_norm,
  ffn_norm,
  gate,
  up,
  down,
  router_norm,  // of a layer with experts, as are those below
  router,
  choice_bias,     // see ExpertsConfig; its name in the file is the row's, without ".bias"
  expert_factors,  // [experts]
  experts_norm,    // this and the next two where experts are beside the dense part
  experts_post_norm,
  dense_post_norm,
  experts_in,   // [inner_dim, dim]: see ExpertsConfig
  experts_out,  // [dim, inner_dim]
  expert_gate,  // a tensor of each expert, or one of all together: [experts, rows, columns]
  expert_up,
  expert_down,
  shared_gate,  // of the expert that takes every token
  shared_up,
  shared_down,
  shared_router,  // what its output is multiplied by is the sigmoid of this product
  ffn_post_norm,
  stream_correct,  // [streams, streams]
  stream_scale,    // [dim]
  input_gate,      // of a layer with an input of its own, as are the next two
  input_out,
  input_post_norm,
  layer_scale,  // [1]: what the stream is multiplied by at the layer's end
  norm,
  stream_out,  // from each stream but the first to what they add up to
  head_down,   // [embed_dim, dim]: back to rows of the embedding's size
  lm_head,
};

// How a tensor has the rows of its roles.
enum class TensorLayout {
  rows,        // those of the first role, then those of the second, ...
  transposed,  // the same as columns: GPT-2
  by_kv_head,  // for each KV head those of its query heads, then its own of K and of V: GPT-NeoX
  in_turn,     // the first of each role, the second of each, ...
  columns_in_turn,  // the same as columns; of a bias, its elements: gpt-oss
  by_head,          // for each query head its rows of each role: Qwen3-Next, DeepSeek
  by_state_head     // for each head of K those of each role: Qwen3-Next
};

struct TensorRow {
  // Without ".weight" and ".bias"; "{}" stands for the number of the layer, "{e}" for that of the
  // expert, "{h}" for that of the head.
  // "{s}" for that of a stream beside the first, from 0 on.
  std::string_view name;
  std::vector<TensorRole> roles;  // mostly one
  TensorLayout layout = TensorLayout::rows;
  bool bare = false;  // files call its weight so, without ".weight", and its bias with "_bias"
};

}  // namespace fp8kv
