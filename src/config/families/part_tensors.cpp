#include "config/families/part_tensors.h"

#include <optional>

#include "base/error.h"

namespace fp8kv {

using enum TensorRole;

RoleTensor tensor_of_experts(TensorRole role, const ModelConfig& config, bool has_experts) {
  const ExpertsConfig experts = config.experts.value_or(ExpertsConfig());
  const int64_t inner = experts.inner_dim > 0 ? experts.inner_dim : config.dim;
  const bool between = has_experts && experts.inner_dim > 0;
  const bool shared = has_experts && experts.shared_hidden_dim > 0;
  const bool beside = has_experts && experts.beside_dense;
  switch (role) {
    case router_norm:
      return {{config.dim}, has_experts && experts.router_norm};
    case expert_factors:
      return {{experts.choices()}, has_experts && experts.factors};
    case experts_norm:
    case experts_post_norm:
    case dense_post_norm:
      return {{config.dim}, beside};
    case router:
      return {{experts.choices(), config.dim}, has_experts, experts.bias};
    case choice_bias:
      return {{experts.choices() - experts.fixed}, has_experts && experts.choice_bias};
    case fixed_gate:
    case fixed_up:
      return {{experts.hidden_dim, config.dim}, has_experts && experts.fixed > 0};
    case fixed_down:
      return {{config.dim, experts.hidden_dim}, has_experts && experts.fixed > 0};
    case experts_scale:
      return {{1}, has_experts && config.block.ffn_scale};
    case experts_in:
      return {{inner, config.dim}, between};
    case experts_out:
      return {{config.dim, inner}, between};
    case experts_in_norm:
      return {{inner}, between && experts.inner_norm};
    case experts_sum_norm:
      return {{inner}, between && experts.inner_out_norm};
    case each_expert_norm:
      return {{inner}, has_experts && experts.each_norm};
    case expert_gate:
    case expert_up:
      return {{experts.hidden_dim, inner},
              has_experts && (role == expert_up || config.block.gated),
              experts.bias};
    case expert_down:
      return {{inner, experts.hidden_dim}, has_experts, experts.bias};
    case shared_gate:
    case shared_up:
      return {{experts.shared_hidden_dim, config.dim},
              shared && (role == shared_up || config.block.gated)};
    case shared_down:
      return {{config.dim, experts.shared_hidden_dim}, shared};
    case shared_router:
      return {{1, config.dim}, shared && experts.shared_gated};
    default:
      assertion_failed("a TensorRole", __FILE__, __LINE__);
  }
}

namespace {

// The tensors of a state whose Q, K and steps come from V, if they differ from those of others.
std::optional<RoleTensor> tensor_of_scan(TensorRole role, const RecurrenceConfig& state,
                                         bool exists) {
  switch (role) {
    case state_q:
    case state_k:
      return RoleTensor{{state.k_width(), state.v_width()}, exists};
    case state_step:
      return RoleTensor{{state.v_width(), state.rank}, exists};
    case state_step_down:
      return RoleTensor{{state.rank, state.v_width()}, exists};
    case state_gate_down:
    case conv_q:
    case conv_k:
      return RoleTensor{{1}, false};
    case state_decay:
      return RoleTensor{{state.v_width(), state.k_dim}, exists};
    case state_skip:
      return RoleTensor{{state.v_width()}, exists && state.skip};
    default:
      return std::nullopt;
  }
}

}  // namespace

RoleTensor tensor_of_state(TensorRole role, const ModelConfig& config, bool has_state) {
  const RecurrenceConfig state = config.recurrence.value_or(RecurrenceConfig());
  const bool recurs = has_state && state.recurs();
  const bool by_head = state.norm == StateNorm::heads;
  const bool delta = state.update == StateUpdate::delta;
  const int64_t from = state.rank > 0 && !state.from_v ? state.rank : config.dim;
  if (state.from_v) {
    if (const auto of_v = tensor_of_scan(role, state, has_state)) return *of_v;
  }
  switch (role) {
    case state_q:
    case state_k:
      return {{state.k_width(), config.dim}, role == state_k ? has_state : recurs, state.bias};
    case state_v:
      return {{state.v_width(), config.dim}, has_state, state.bias};
    case state_gate:
      return {{state.v_width(), state.full_gate ? config.dim : from}, has_state, state.bias};
    case state_step:
      return {{state.steps(), from}, recurs && !state.fixed_decays, state.bias};
    case state_gate_down:
      return {{state.rank, config.dim}, has_state && state.rank > 0 && !state.full_gate};
    case state_step_down:
      return {{state.rank, config.dim}, has_state && state.rank > 0};
    case state_strength:
      return {{state.v_heads, config.dim}, has_state && delta, state.bias};
    case conv_q:
    case conv_k:
      return {
          {state.k_width(), 1, state.conv_width}, recurs && state.conv_width > 0, state.conv_bias};
    case conv_v:
      return {{state.v_width(), 1, state.conv_width},
              has_state && state.conv_width > 0,
              state.conv_bias};
    case state_decay:
      return {{state.v_heads}, recurs && !state.fixed_decays};
    case state_step_bias:
      return {{state.steps()}, recurs && !state.fixed_decays};
    case state_skip:
      return {{state.v_heads}, has_state && state.skip};
    case state_norm:
      return {{by_head ? state.v_dim : state.v_width()},
              has_state && state.norm != StateNorm::none};
    case state_step_norm:
      return {{state.rank}, has_state && state.from_v};
    case state_k_norm:
    case state_q_norm:
      return {{state.k_dim}, has_state && (state.from_v || state.qk_norm)};
    case state_out:
      return {{config.dim, state.v_width()}, has_state, state.out_bias};
    default:
      assertion_failed("a TensorRole of a state", __FILE__, __LINE__);
  }
}

RoleTensor tensor_of_latent(TensorRole role, const ModelConfig& config, bool attends) {
  const bool exists = config.latent.has_value() && attends;
  const LatentConfig latent = config.latent.value_or(LatentConfig());
  const bool q_in_two = exists && latent.q_rank > 0;
  switch (role) {
    case q_down:
      return {{latent.q_rank, config.dim}, q_in_two, config.qkv_bias};
    case q_down_norm:
      return {{latent.q_rank}, q_in_two};
    case TensorRole::latent:
      return {{latent.rank, config.dim}, exists, config.qkv_bias};
    case k_rope:
      return {{latent.rope_dim, config.dim}, exists && latent.rope_dim > 0, config.qkv_bias};
    case latent_norm:
      return {{latent.rank}, exists};
    case k_up:
      return {{config.n_heads * latent.nope_dim, latent.rank}, exists};
    case v_up:
      return {{config.n_heads * latent.v_dim, latent.rank}, exists};
    case q:
      return {{config.n_heads * (latent.nope_dim + latent.rope_dim),
               q_in_two ? latent.q_rank : config.dim},
              exists};
    case o:
      return {{config.dim, config.n_heads * latent.v_dim}, exists, config.o_bias};
    default:
      assertion_failed("a TensorRole", __FILE__, __LINE__);
  }
}

RoleTensor tensor_of_indexer(TensorRole role, const ModelConfig& config, bool chooses) {
  const IndexerConfig indexer = config.indexer.value_or(IndexerConfig());
  const int64_t q_from = config.latent       ? config.latent->q_rank
                         : config.shared_row ? config.shared_row->q_rank
                                             : config.dim;
  const int64_t parts = indexer.weighted ? indexer.parts() : 1;
  const bool exists = config.indexer && chooses;
  switch (role) {
    case index_q:
      return {{indexer.n_heads * indexer.head_dim, q_from}, exists};
    case index_k:
      return {{parts * indexer.head_dim, config.dim}, exists};
    case index_gate:
      return {{parts * indexer.head_dim, config.dim}, exists && indexer.weighted};
    case index_bias:
      return {{indexer.block, parts * indexer.head_dim}, exists && indexer.weighted};
    case index_q_norm:
      return {{indexer.head_dim}, exists && !indexer.weighs_heads()};
    case index_norm:
      return {{indexer.head_dim}, exists, indexer.is_dsa() || indexer.norms_tokens};
    case index_weights:
      return {{indexer.n_heads, config.dim}, exists && indexer.weighs_heads()};
    default:
      assertion_failed("a TensorRole of an indexer", __FILE__, __LINE__);
  }
}

RoleTensor tensor_of_shared_row(TensorRole role, const ModelConfig& config, int64_t layer) {
  const LayerDescription& of_layer = config.layer(layer);
  const SharedRowConfig& row = config.shared_row.value();
  const int64_t size = of_layer.k_head_dim, q_size = config.n_heads * size;
  const int64_t pooled = (of_layer.pool_overlaps ? 2 : 1) * size;
  const bool pools = of_layer.pool > 0;
  switch (role) {
    case q_down:
      return {{row.q_rank, config.dim}};
    case q_down_norm:
      return {{row.q_rank}};
    case q:
      return {{q_size, row.q_rank}};
    case k_norm:
      return {{size}};
    case pool_rows:
    case pool_gate:
      return {{pooled, config.dim}, pools};
    case pool_bias:
      return {{of_layer.pool, pooled}, pools};
    case pool_norm:
      return {{size}, pools};
    case o_down:
      return {{row.o_groups * row.o_rank, q_size / row.o_groups}};
    case o:
      return {{config.dim, row.o_groups * row.o_rank}};
    default:
      return {{1}, false};
  }
}

RoleTensor tensor_of_block(TensorRole role, const ModelConfig& config, int64_t layer) {
  const SharedBlockConfig& block = config.shared_block.value();
  const LayerDescription& of_layer = config.layer(layer);
  const bool attends = config.attends(layer), adapts = attends && block.adapts_attention;
  switch (role) {
    case attn_norm:
      return {{config.attention_in_dim()}, attends};
    case state_in_norm:
      return {{config.dim}, config.keeps_state(layer)};
    case q_lora_down:
    case k_lora_down:
    case v_lora_down:
      return {{block.rank, config.attention_in_dim()}, adapts};
    case q_lora_up:
      return {{config.n_heads_of(layer) * of_layer.k_head_dim, block.rank}, adapts};
    case k_lora_up:
      return {{of_layer.n_kv_heads * of_layer.k_head_dim, block.rank}, adapts};
    case v_lora_up:
      return {{of_layer.n_kv_heads * of_layer.v_head_dim, block.rank}, adapts};
    case ffn_lora_down:
      return {{block.rank, config.dim}, attends};
    case gate_lora_up:
    case up_lora_up:
      return {{config.hidden_dim, block.rank}, attends};
    case block_out:
      return {{config.dim, config.dim}, attends};
    default:
      assertion_failed("a TensorRole of a shared block", __FILE__, __LINE__);
  }
}

RoleTensor tensor_of_distances(TensorRole role, const ModelConfig& config, int64_t layer) {
  if (!config.distances || !config.attends(layer)) return {{1}, false};
  const int64_t dim = config.distances->dim;
  if (role == distance_bank) return {{dim, config.distance_extent(layer)}};
  return {{config.n_heads_of(layer) * dim, config.dim}};
}

RoleTensor tensor_of_short_convs(TensorRole role, const ModelConfig& config, int64_t layer) {
  if (!config.short_convs) return {{1}, false};
  const LayerDescription& of_layer = config.layer(layer);
  const int64_t channels = role == k_conv   ? of_layer.n_kv_heads * of_layer.k_head_dim
                           : role == v_conv ? of_layer.n_kv_heads * of_layer.v_head_dim
                                            : config.dim;
  return {{channels, 1, config.short_convs->width}};
}

RoleTensor tensor_of_drafter(TensorRole role, const ModelConfig& config) {
  const bool exists = config.drafter.has_value();
  const DrafterConfig drafter = config.drafter.value_or(DrafterConfig());
  if (role == hidden_product) return {{drafter.dim, kDrafterStates * drafter.target_dim}, exists};
  return {{drafter.dim}, exists};
}

RoleTensor tensor_of_streams(TensorRole role, const ModelConfig& config) {
  const bool exists = config.streams.has_value();
  const StreamsConfig streams = config.streams.value_or(StreamsConfig());
  const int64_t count = streams.count;
  switch (role) {
    case stream_in:
    case stream_out:
      return {{config.dim, config.dim}, exists};
    case stream_norm:
      return {{config.dim}, exists};
    case stream_router:
      return {{count, config.dim}, exists};
    case stream_predict:
      return {{count * count, count}, exists};
    case stream_correct:
      return {{count, count}, exists};
    case stream_scale:
      return {{config.dim}, exists && streams.scaled};
    default:
      assertion_failed("a TensorRole of streams", __FILE__, __LINE__);
  }
}

RoleTensor tensor_of_hyper(TensorRole role, const ModelConfig& config) {
  const bool exists = config.hyper.has_value();
  const HyperConfig hyper = config.hyper.value_or(HyperConfig());
  const int64_t width = hyper.count * config.dim;
  const bool ranked = exists && hyper.rank > 0, shared = exists && hyper.rank == 0;
  const bool weighed_head = shared && !hyper.mean_head;
  switch (role) {
    case hyper_attn:
    case hyper_ffn:
      return {{ranked ? hyper.count : hyper.width(), width}, exists};
    case hyper_attn_base:
    case hyper_ffn_base:
      return {{hyper.width()}, shared};
    case hyper_attn_scale:
    case hyper_ffn_scale:
      return {{hyper.rounds > 0 ? 3 : 2}, shared};
    case hyper_head:
      return {{hyper.count, width}, weighed_head};
    case hyper_head_base:
      return {{hyper.count}, weighed_head};
    case hyper_head_scale:
      return {{1}, weighed_head};
    case hyper_attn_norm:
    case hyper_ffn_norm:
    case hyper_head_norm:
      return {{width}, ranked};
    case hyper_attn_down:
    case hyper_ffn_down:
    case hyper_head_down:
      return {{hyper.rank, width}, ranked};
    case hyper_attn_up:
    case hyper_ffn_up:
    case hyper_head_up:
      return {{width, hyper.rank}, ranked};
    default:
      assertion_failed("a TensorRole of hyper-connections", __FILE__, __LINE__);
  }
}

RoleTensor tensor_of_ngrams(TensorRole role, const ModelConfig& config, int64_t layer) {
  const bool exists = config.ngrams && config.ngrams->has(layer);
  if (!exists) return {{1}, false};
  const NgramConfig& ngrams = *config.ngrams;
  const int64_t width = config.hyper->count * config.dim;
  switch (role) {
    case ngram_table:
      return {{ngrams.rows_of(layer) / ngrams.files, ngrams.row_dim()}};
    case ngram_key:
      return {{width, ngrams.dim}};
    case ngram_value:
      return {{config.dim, ngrams.dim}};
    case ngram_key_norm:
    case ngram_query_norm:
    case ngram_conv_norm:
      return {{width}};
    case ngram_conv:
      return {{width, 1, ngrams.conv_width}};
    default:
      assertion_failed("a TensorRole of n-grams", __FILE__, __LINE__);
  }
}

}  // namespace fp8kv
