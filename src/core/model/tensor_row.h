// The names of a model's tensors, as a table that each architecture provides.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace fp8kv {

// The role of a tensor in the forward pass, in the order in which a layer uses them. Each has a row
// in tensor_roles.cpp.
enum class TensorRole {
  embedding,
  embed_up,   // [dim, embed_dim], for models whose embedding rows have another size
  positions,  // a row for each position, added to the embedding of the token there
  embed_norm,
  // The next three are for models with per-layer inputs, see ModelConfig::layer_input_dim.
  layer_embedding,
  layer_projection,
  layer_projection_norm,
  stream_in,       // several streams: makes each stream but the first from the embedding
  hidden_product,  // [dim, 3 * target_dim]: of a drafter, like the next two; see DrafterConfig
  hidden_norm,
  token_norm,   // of the next token's embedding
  ngram_table,  // this and the next six: of n-grams, see NgramConfig; one of several files' tensors
  ngram_key,    // [streams * dim, NgramConfig::dim]
  ngram_value,  // [dim, NgramConfig::dim]
  ngram_key_norm,  // [streams * dim], like the next two
  ngram_query_norm,
  ngram_conv_norm,
  ngram_conv,  // [streams * dim, 1, conv_width]
  attn_norm,
  stream_norm,       // this and the next two predict the streams before a layer runs
  stream_router,     // [streams, dim]
  stream_predict,    // [streams * streams, streams]
  attn_res_norm,     // this and the next: attention residuals before attention; see AttnResForward
  attn_res,          // [1, dim]
  hyper_attn,        // [width, streams * dim]: around attention, like the next five
  hyper_attn_base,   // [width]; see HyperConfig
  hyper_attn_scale,  // [2 or 3]
  // With a rank: the rows' weights for what is written are in hyper_attn [streams, streams * dim].
  hyper_attn_norm,  // [streams * dim]
  hyper_attn_down,  // [rank, streams * dim]
  hyper_attn_up,    // [streams * dim, rank]
  q,
  k,
  v,
  q_lora_down,  // [rank, 2 * dim]: this and the next five: see SharedBlockConfig
  q_lora_up,    // [n_heads * k_head_dim, rank]
  k_lora_down,
  k_lora_up,
  v_lora_down,
  v_lora_up,
  k_conv,     // [n_kv_heads * k_head_dim, 1, width]: this and the next: see ShortConvsConfig
  v_conv,     // [n_kv_heads * v_head_dim, 1, width]
  attn_gate,  // attention's output is multiplied by a function of this product: AttentionGate
  q_down,     // latent attention, as are the roles up to v_up: makes the vector behind Q
  q_down_norm,
  latent,  // makes the latent behind K and V
  k_rope,  // makes the rotated part of K, which all heads share
  latent_norm,
  k_up,  // for each head, from the latent to the part of K that does not rotate
  v_up,
  pool_rows,  // [parts * head_dim, dim]: this and the next three: see SharedRowConfig
  pool_gate,
  pool_bias,  // [block, parts * head_dim]
  pool_norm,
  q_norm,
  k_norm,
  sinks,      // [n_heads]
  lambda_q1,  // [k_head_dim], like the next three: see BlockConfig::differential
  lambda_k1,
  lambda_q2,
  lambda_k2,
  distance,       // [n_heads * dim, dim of the stream]: this and the next: see DistanceConfig
  distance_bank,  // [dim, extent]
  index_q,        // this and the next four: of a sparse indexer; DSA: from the vector behind Q
  index_k,        // [head_dim, dim]
  index_q_norm,   // of its Q; absent in DSA
  index_norm,     // of its K
  index_weights,  // [n_heads, dim]: how much each of its heads counts
  index_gate,     // like pool_gate, for the keys of an indexer, as is the next
  index_bias,
  o_down,  // [o_groups * o_rank, elements of a group]: before `o`; see SharedRowConfig
  o,
  attn_conv,      // [dim, 1, width]: of attention's output
  state_in_norm,  // [dim]: of a state's input, beside shared blocks
  state_q,        // this up to state_out: for layers that keep a state; see RecurrenceConfig
  state_k,
  state_v,
  state_gate,
  state_step,
  state_gate_down,  // this and the next: see RecurrenceConfig::rank
  state_step_down,
  state_strength,
  conv_q,  // a row for each channel
  conv_k,
  conv_v,
  state_decay,
  state_step_bias,
  state_skip,
  state_norm,
  state_step_norm,  // this and the next two: see RecurrenceConfig::from_v
  state_k_norm,     // this and the next: also with RecurrenceConfig::qk_norm
  state_q_norm,
  state_out,
  laurel_down,  // [laurel_rank, dim]
  laurel_up,
  laurel_norm,
  attn_post_norm,
  attn_residual_gate,  // [dim]: see ResidualGate
  ffn_res_norm,        // this and the next: attention residuals before the feed-forward part
  ffn_res,
  hyper_ffn,  // around the feed-forward part, like around attention
  hyper_ffn_base,
  hyper_ffn_scale,
  hyper_ffn_norm,
  hyper_ffn_down,
  hyper_ffn_up,
  ffn_norm,
  gate,
  up,
  ffn_lora_down,  // [rank, dim]: of gate and up, as are the next two; see SharedBlockConfig
  gate_lora_up,   // [hidden_dim, rank]
  up_lora_up,
  xielu_positive,  // a number, like the next three: see Xielu
  xielu_negative,
  xielu_beta,
  xielu_eps,
  down,
  block_out,    // [dim, dim]: of a shared block's output
  router_norm,  // this and the roles below: for layers with experts
  router,
  choice_bias,     // see ExpertsConfig; the row has its name in the file without ".bias"
  expert_factors,  // [experts]
  experts_norm,    // this and the next two: for experts beside a dense part
  experts_post_norm,
  dense_post_norm,
  experts_in,   // [inner_dim, dim]: see ExpertsConfig
  experts_out,  // [dim, inner_dim]
  experts_in_norm,
  each_expert_norm,  // [inner_dim]: see ExpertsConfig::each_norm
  experts_sum_norm,
  expert_gate,  // one tensor per expert, or one for all: [experts, rows, columns]
  expert_up,
  expert_down,
  shared_gate,  // the shared expert, which takes every token
  shared_up,
  shared_down,
  shared_router,  // the sigmoid of this product multiplies the shared expert's output
  fixed_gate,     // [fixed, rows, columns]: this and the next two: see ExpertsConfig::fixed
  fixed_up,
  fixed_down,
  dense_scale,    // [1]: of the dense part; see BlockConfig::ffn_scale
  experts_scale,  // [1]: of the experts
  ffn_conv,       // [dim, 1, width]: of the feed-forward part's output
  ffn_post_norm,
  ffn_residual_gate,  // [dim]
  stream_correct,     // [streams, streams]
  stream_scale,       // [dim]
  input_gate,         // this and the next two: for layers with a per-layer input
  input_out,
  input_post_norm,
  layer_scale,    // [1]: multiplies the stream at the end of the layer
  head_res_norm,  // this and the next: attention residuals at the end of the model
  head_res,
  hyper_head,  // [streams, streams * dim]: for the sum at the end of the model
  hyper_head_base,
  hyper_head_scale,  // [1]
  hyper_head_norm,   // this and the next two: with a rank, in place of the three before
  hyper_head_down,
  hyper_head_up,
  norm,
  stream_out,  // several streams: from each stream but the first to the final sum
  head_down,   // [embed_dim, dim]: back to the width of the embedding
  lm_head,
};
inline constexpr size_t kRoleCount = static_cast<size_t>(TensorRole::lm_head) + 1;

// How a tensor that serves several roles arranges their rows.
enum class TensorLayout {
  rows,        // all rows of the first role, then all of the second, ...
  transposed,  // like rows, but as columns: GPT-2
  // For each KV head the rows of its query heads, then of its K and V: GPT-NeoX. Where layers
  // differ in KV heads, all have as many parts as the layer with the fewest: MiMo V2.5.
  by_kv_head,
  in_turn,          // row 0 of each role, row 1 of each, ...
  columns_in_turn,  // like in_turn, but as columns (in a bias, as elements): gpt-oss
  by_head,          // for each query head, its rows of each role: Qwen3-Next, DeepSeek
  by_state_head     // for each K head, its rows of each role: Qwen3-Next
};

// The shape in which a file has a vector of n elements.
enum class VectorForm {
  plain,         // [n]
  one_row,       // [1, n]: ERNIE
  first_of_two,  // [2, n], of which the model uses the first row: ERNIE with images
  inner,         // [1, 1, n, 1]: Kimi Linear
  of_k_dim       // [k_dim of a state], of which the first n count: Kimi K3
};

struct TensorRow {
  // The name without ".weight" and ".bias". "{}" stands for the number of the layer, "{e}" for the
  // expert, "{h}" for the head, "{s}" for a stream beside the first, "{f}" for one of
  // NgramConfig::files, from 0 on. Files may number two layers as one: "{pair}" stands for the
  // number of the two, and "{i}" for 0 or 1. "{block}" stands for the first layer that uses a
  // shared block, "{use}" for the number of the use, and "{within}" for "mamba_decoder." in layers
  // that use one; in other layers it is nothing.
  std::string_view name;
  std::vector<TensorRole> roles;  // mostly one
  TensorLayout layout = TensorLayout::rows;
  bool bare = false;  // the file has the weight without ".weight", and the bias with "_bias"
  VectorForm form = VectorForm::plain;
  std::string_view other_name = {};  // that some files have instead; "": none
  bool optional = false;             // whole models may lack it; for the choice bias alone
  // FP8 blocks may begin anew in each part of by_kv_head: MiMo V2.5.
  bool own_blocks = false;
};

}  // namespace fp8kv
