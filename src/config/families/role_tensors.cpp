#include "config/families/role_tensors.h"

#include <algorithm>

#include "config/families/part_tensors.h"

namespace fp8kv {
namespace {

using enum TensorRole;

bool is_of_state(TensorRole role) {
  return role >= state_q && role <= state_out;
}

bool is_of_hyper(TensorRole role) {
  return (role >= hyper_attn && role <= hyper_attn_up) ||
         (role >= hyper_ffn && role <= hyper_ffn_up) ||
         (role >= hyper_head && role <= hyper_head_up);
}

bool is_of_ngrams(TensorRole role) {
  return role >= ngram_table && role <= ngram_conv;
}

// Whether files have the gate of attention in the tensor of Q, with its bias: Qwen3-Next.
bool has_gate_in_q(const ModelConfig& config) {
  return std::any_of(config.tensors.begin(), config.tensors.end(), [](const TensorRow& row) {
    return row.roles.front() == q && row.roles.back() == attn_gate;
  });
}

// The roles of attention with one row, which other attention has otherwise or not at all.
bool is_of_shared_row(TensorRole role) {
  return role == q_down || role == q_down_norm || role == q || role == v || role == k_norm ||
         role == o || role == o_down || (role >= pool_rows && role <= pool_norm);
}

// The roles of shared blocks, and those that layers with such blocks have otherwise.
bool is_of_block(TensorRole role) {
  return role == attn_norm || role == state_in_norm || role == block_out ||
         (role >= q_lora_down && role <= v_lora_up) ||
         (role >= ffn_lora_down && role <= up_lora_up);
}

bool has_head_norms(const BlockConfig& block) {
  return block.qk_norm != QkNorm::none && !is_plain(block.qk_norm);
}

// The shape of the norm weights of Q or K.
Shape head_norm_shape(const ModelConfig& config, int64_t n_heads, int64_t head_dim) {
  switch (config.block.qk_norm) {
    case QkNorm::whole:
      return {n_heads * head_dim};
    case QkNorm::own_heads:
      return {n_heads, head_dim};
    default:
      return {head_dim};
  }
}

}  // namespace

RoleTensor tensor_of(TensorRole role, const ModelConfig& config, int64_t layer) {
  const BlockConfig& block = config.block;
  const LayerDescription& of_layer = config.layer(layer);
  const bool has_experts = config.has_experts(layer), has_dense = config.has_dense(layer);
  const bool feeds_forward = of_layer.feed_forward != FeedForward::none;
  const bool has_kv = config.writes_cache(layer);
  const bool has_state = config.keeps_state(layer);
  const bool mixes = of_layer.mixing != Mixing::none;
  const bool attends = config.attends(layer);
  const NormPlace norm_place = config.norm_place(layer);
  const NormPlace ffn_norm_place = config.ffn_norm_place(layer);
  const bool normed_before = norms_input(norm_place) && !config.bare_norms;
  const int64_t heads = config.n_heads_of(layer), kv_heads = of_layer.n_kv_heads;
  const int64_t attended_dim = heads * of_layer.v_head_dim;
  const bool other_size = config.embed_dim > 0;
  const bool has_inputs = config.layer_input_dim > 0;
  const int64_t hidden_dim = config.hidden_dim_of(layer);
  const int64_t vocab_rows = config.stored_vocab > 0 ? config.stored_vocab : config.vocab_size;
  const int64_t embed_dim = other_size       ? config.embed_dim
                            : config.drafter ? config.drafter->dim
                                             : config.dim;
  if (config.shared_row && is_of_shared_row(role)) return tensor_of_shared_row(role, config, layer);
  if (config.shared_block && is_of_block(role)) return tensor_of_block(role, config, layer);
  switch (role) {
    case embedding:
      return {{vocab_rows, embed_dim}};
    case hidden_product:
    case hidden_norm:
    case token_norm:
      return tensor_of_drafter(role, config);
    case embed_up:
      return {{config.dim, embed_dim}, other_size};
    case positions:
      return {{config.position_rows, config.dim}, config.position_rows > 0};
    case embed_norm:
      return {{config.dim},
              config.embed_norm && !config.bare_norms && !config.bare_embed_norm,
              block.norm_bias};
    case layer_embedding:
      return {{config.layer_vocab_size, config.n_layers() * config.layer_input_dim}, has_inputs};
    case layer_projection:
      return {{config.n_layers() * config.layer_input_dim, config.dim}, has_inputs};
    case layer_projection_norm:
      return {{config.layer_input_dim}, has_inputs};
    case stream_in:
    case stream_norm:
    case stream_router:
    case stream_predict:
    case stream_correct:
    case stream_scale:
    case stream_out:
      return tensor_of_streams(role, config);
    case laurel_down:
      return {{config.laurel_rank, config.dim}, config.laurel_rank > 0};
    case laurel_up:
      return {{config.dim, config.laurel_rank}, config.laurel_rank > 0};
    case laurel_norm:
      return {{config.dim}, config.laurel_rank > 0};
    case attn_res_norm:
    case ffn_res_norm:
    case head_res_norm:
      return {{config.dim}, config.attn_res_block > 0};
    case attn_res:
    case ffn_res:
    case head_res:
      return {{1, config.dim}, config.attn_res_block > 0};
    case input_gate:
      return {{config.layer_input_dim, config.dim}, has_inputs};
    case input_out:
      return {{config.dim, config.layer_input_dim}, has_inputs};
    case input_post_norm:
      return {{config.dim}, has_inputs};
    case layer_scale:
      return {{1}, block.layer_scale};
    case head_down:
      return {{embed_dim, config.dim}, other_size};
    case lm_head:
      return {{vocab_rows, embed_dim}, true, block.head_bias};
    case attn_norm:
      return {{config.dim}, mixes && normed_before, block.norm_bias};
    case ffn_norm:
      return {{config.dim}, feeds_forward && normed_before && !block.shared_norm, block.norm_bias};
    case attn_post_norm:
      return {{config.dim},
              mixes && norms_behind(norm_place) && !block.bare_attn_post_norm,
              block.norm_bias};
    case attn_residual_gate:
      return {{config.dim}, mixes && block.gate_temperature > 0.0};
    case ffn_residual_gate:
      return {{config.dim}, feeds_forward && block.gate_temperature > 0.0};
    case ffn_post_norm:
      return {{config.dim}, feeds_forward && norms_behind(ffn_norm_place), block.norm_bias};
    case norm:
      return {{config.dim}, norms_end(block.norm_place) && !config.bare_norms, block.norm_bias};
    case q_down:
    case q_down_norm:
    case TensorRole::latent:
    case k_rope:
    case latent_norm:
    case k_up:
    case v_up:
      return tensor_of_latent(role, config, attends);
    case q:
      if (config.latent) return tensor_of_latent(role, config, attends);
      return {{heads * of_layer.k_head_dim, config.attention_in_dim()}, attends, config.qkv_bias};
    case attn_gate:
      return {{is_of_heads(block.attention_gate) ? heads
               : config.latent                   ? heads * config.latent->v_dim
                                                 : attended_dim,
               config.dim},
              attends && block.attention_gate != AttentionGate::none,
              config.qkv_bias && has_gate_in_q(config)};
    case k:
      return {{kv_heads * of_layer.k_head_dim, config.attention_in_dim()},
              has_kv && !config.latent,
              config.qkv_bias};
    case v:
      return {{kv_heads * of_layer.v_head_dim, config.attention_in_dim()},
              has_kv && !config.latent && !of_layer.v_is_k,
              config.qkv_bias};
    case q_norm:
      return {head_norm_shape(config, heads, of_layer.k_head_dim), attends && has_head_norms(block),
              block.qk_norm_bias};
    case k_norm:
      return {head_norm_shape(config, kv_heads, of_layer.k_head_dim),
              has_kv && has_head_norms(block), block.qk_norm_bias};
    case sinks:
      return {{heads}, config.has_sinks(layer)};
    case lambda_q1:
    case lambda_k1:
    case lambda_q2:
    case lambda_k2:
      return {{of_layer.k_head_dim}, attends && block.differential};
    case choice_bias:
      if (config.has_expert_table(layer)) return {{1}, false};
      return tensor_of_experts(role, config, has_experts);
    case pool_rows:
    case pool_gate:
    case pool_bias:
    case pool_norm:
    case o_down:
    case q_lora_down:
    case q_lora_up:
    case k_lora_down:
    case k_lora_up:
    case v_lora_down:
    case v_lora_up:
    case ffn_lora_down:
    case gate_lora_up:
    case up_lora_up:
    case state_in_norm:
    case block_out:
      return {{1}, false};
    case distance:
    case distance_bank:
      return tensor_of_distances(role, config, layer);
    case k_conv:
    case v_conv:
    case attn_conv:
    case ffn_conv:
      return tensor_of_short_convs(role, config, layer);
    case dense_scale:
      return {{1}, block.ffn_scale && has_dense && !has_experts};
    case index_q:
    case index_k:
    case index_q_norm:
    case index_norm:
    case index_weights:
    case index_gate:
    case index_bias:
      return tensor_of_indexer(role, config, of_layer.index_bytes > 0);
    case o:
      if (config.latent) return tensor_of_latent(role, config, attends);
      return {{config.dim, attended_dim}, attends, config.o_bias};
    case gate:
      return {{hidden_dim, config.dim}, block.gated && has_dense, config.mlp_bias};
    case up:
      return {{hidden_dim, config.dim}, has_dense, config.mlp_bias};
    case xielu_positive:
    case xielu_negative:
      return {{1}, block.xielu && has_dense};
    case xielu_beta:
    case xielu_eps:
      return {{}, block.xielu && has_dense};
    case down:
      return {{config.dim, hidden_dim}, has_dense, config.mlp_bias};
    default:
      if (is_of_state(role)) return tensor_of_state(role, config, has_state);
      if (is_of_hyper(role)) return tensor_of_hyper(role, config);
      if (is_of_ngrams(role)) return tensor_of_ngrams(role, config, layer);
      return tensor_of_experts(role, config, has_experts);
  }
}

}  // namespace fp8kv
