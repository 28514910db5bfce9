#include "checkpoint/identity/kv_config.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/text.h"
#include "checkpoint/identity/config_numbers.h"
#include "checkpoint/identity/swiglu_numbers.h"
#include "core/numbers/dtype.h"

namespace fp8kv {
namespace {

const char* rope_type(RopeScaling scaling) {
  constexpr const char* kTypes[] = {"default", "linear", "llama3", "yarn", "longrope"};
  return kTypes[static_cast<size_t>(scaling)];
}

// Joins numbers: "1, 1.25".
std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(cat(value));
  return join(texts);
}

void add_rope(const RopeConfig& rope, const std::string& prefix, ConfigNumbers& out) {
  out.add(prefix + "rope_theta", rope.theta);
  out.add_unless(int64_t{0}, prefix + "rotary_dim", rope.rotary_dim);
  if (rope.pairs == RopePairs::neighbours) out.add(prefix + "rotated pairs", "neighbours");
  out.add_unless(0.0, prefix + "llama_4_scaling_beta", rope.q_growth);
  out.add_unless(0.0, prefix + "q_growth_from", rope.q_growth_from);
  out.add_unless(false, prefix + "q_grows_evenly", rope.q_grows_evenly);
  out.add_unless(1.0, prefix + "key_multiplier", rope.k_factor);
  out.add_unless(false, prefix + "turns backwards", rope.backwards);
  if (!rope.turns) out.add(prefix + "floor_scale", rope.original_context);
  if (rope.scaling == RopeScaling::none) return;
  out.add(prefix + "rope_type", rope_type(rope.scaling));
  out.add(prefix + "factor", rope.factor);
  if (rope.scaling == RopeScaling::linear) return;
  out.add(prefix + "original_max_position_embeddings", rope.original_context);
  if (rope.scaling == RopeScaling::llama3) {
    out.add(prefix + "low_freq_factor", rope.low_freq_factor);
    out.add(prefix + "high_freq_factor", rope.high_freq_factor);
    return;
  }
  if (rope.scaling == RopeScaling::longrope) {
    out.add(prefix + "short_factor", numbers(rope.short_factors));
    out.add(prefix + "long_factor", numbers(rope.long_factors));
    out.add(prefix + "attention_factor", rope.attention_factor);
    return;
  }
  out.add(prefix + "beta_fast", rope.beta_fast);
  out.add(prefix + "beta_slow", rope.beta_slow);
  out.add(prefix + "truncate", rope.truncate);
  out.add(prefix + "attention_factor", rope.attention_factor);
}

void add_ropes(const ModelConfig& config, ConfigNumbers& out) {
  for (size_t i = 0; i < config.ropes.size(); ++i) {
    add_rope(config.ropes[i], i == 0 ? "" : cat("rope ", i, " "), out);
  }
  const auto rope_of = [&](int64_t layer) {
    return cat(config.layer_ropes[static_cast<size_t>(layer)]);
  };
  const std::string ropes = by_layer(config.n_layers(), rope_of);
  out.add_unless(std::string("0"), "rope of layers", ropes);
}

void add_layers(const ModelConfig& config, ConfigNumbers& out) {
  out.add("num_hidden_layers", config.n_layers());
  out.add("num_attention_heads",
          by_layer(config.n_layers(), [&](int64_t i) { return cat(config.n_heads_of(i)); }));
  out.add("num_key_value_heads",
          by_layer(config.n_layers(), [&](int64_t i) { return cat(config.layer(i).n_kv_heads); }));
  out.add("head_dim", by_layer(config.n_layers(), [&](int64_t i) {
            const LayerDescription& layer = config.layer(i);
            return layer.k_head_dim == layer.v_head_dim
                       ? cat(layer.k_head_dim)
                       : cat(layer.k_head_dim, " of V ", layer.v_head_dim);
          }));
  out.add("attention", by_layer(config.n_layers(), [&](int64_t i) {
            const LayerDescription& layer = config.layer(i);
            const std::string reach = layer.reach > 0 ? cat(" ", layer.reach) : "";
            const std::string of =
                layer.cache_of >= 0 && layer.cache_of != i ? cat(" of layer ", layer.cache_of) : "";
            return cat(mixing_name(layer.mixing), reach, of,
                       layer.state_beside ? " beside a state" : "");
          }));
}

void add_latent(const LatentConfig& latent, ConfigNumbers& out) {
  out.add("kv_lora_rank", latent.rank);
  out.add("qk_rope_head_dim", latent.rope_dim);
  out.add("qk_nope_head_dim", latent.nope_dim);
  out.add("v_head_dim", latent.v_dim);
  out.add("q_lora_rank", latent.q_rank);
  out.add_unless(1.0, "mla_scale_q_lora", latent.q_factor);
  out.add_unless(1.0, "mla_scale_kv_lora", latent.latent_factor);
}

void add_shared_row(const ModelConfig& config, ConfigNumbers& out) {
  const SharedRowConfig& row = config.shared_row.value();
  out.add("q_lora_rank", row.q_rank);
  out.add("qk_rope_head_dim", row.rope_dim);
  out.add("o_groups", row.o_groups);
  out.add("o_lora_rank", row.o_rank);
  out.add("pools", by_layer(config.n_layers(), [&](int64_t i) {
            const LayerDescription& layer = config.layer(i);
            return cat(layer.pool, layer.pool_overlaps ? " overlapping" : "");
          }));
}

// K and V of later layers depend on what earlier layers attend to.
void add_ngrams(const NgramConfig& ngrams, ConfigNumbers& out) {
  const std::vector<double> layers(ngrams.layers.begin(), ngrams.layers.end());
  out.add_unless(std::string(), "ngram_layers", numbers(layers));
  out.add("ngram_size", ngrams.longest);
  out.add("heads_per_ngram", ngrams.heads);
  out.add("ngram_embed_dim", ngrams.dim);
  out.add("ngram_vocab_size_base", ngrams.least_rows);
  out.add("ngram_seed", ngrams.seed);
  out.add("ngram_hashed_ids", ngrams.vocab_size);
  out.add("ngram_gap", int64_t{ngrams.gap});
  out.add("ngram_conv_width", ngrams.conv_width);
}

void add_convs_and_distances(const ModelConfig& config, ConfigNumbers& out) {
  if (config.short_convs) out.add("short_conv_width", config.short_convs->width);
  if (!config.distances) return;
  out.add("distance_dim", config.distances->dim);
  out.add("distance_extent", config.distances->extent);
}

void add_indexer(const IndexerConfig& indexer, ConfigNumbers& out) {
  out.add("index_topk", indexer.top_k);
  out.add("index_n_heads", indexer.n_heads);
  out.add("index_head_dim", indexer.head_dim);
  if (indexer.pairs == RopePairs::neighbours) out.add("indexer_rope_interleave", true);
  out.add_unless(false, "indexer_rotates_last", indexer.rotates_last);
  out.add_unless(1e-6, "indexer_norm_eps", indexer.norm_eps);
  out.add_unless(int64_t{1}, "index_block_size", indexer.block);
  out.add_unless(false, "index_pooled", indexer.pooled);
  out.add_unless(false, "index_weighted", indexer.weighted);
  out.add_unless(false, "index_norms_tokens", indexer.norms_tokens);
  out.add_unless(int64_t{0}, "index_local_blocks", indexer.local_blocks);
}

void add_drafter(const DrafterConfig& drafter, ConfigNumbers& out) {
  out.add("hidden_size of the drafter", drafter.dim);
  out.add("target_hidden_size", drafter.target_dim);
  std::vector<double> layers(drafter.hidden_layers.begin(), drafter.hidden_layers.end());
  out.add_unless(std::string(), "eagle_aux_hidden_state_layer_ids", numbers(layers));
}

void add_block(const BlockConfig& block, ConfigNumbers& out) {
  const BlockConfig usual;
  const auto choice = [&](const char* key, auto chosen, auto normal,
                          std::initializer_list<const char*> names) {
    if (chosen != normal) out.add(key, *std::next(names.begin(), static_cast<int>(chosen)));
  };
  choice("norm", block.norm, usual.norm, {"rms", "layer"});
  choice("norm_place", block.norm_place, usual.norm_place,
         {"before", "after", "around", "after_add", "none", "carried"});
  choice("qk_norm", block.qk_norm, usual.qk_norm,
         {"none", "per_head", "whole", "own_heads", "plain", "plain_all"});
  out.add_unless(usual.q_multiplier, "q_multiplier", block.q_multiplier);
  out.add_unless(usual.qk_norm_bias, "qk_norm_bias", block.qk_norm_bias);
  choice("score_bias", block.score_bias, usual.score_bias, {"none", "alibi", "alibi_bf16"});
  choice("hidden_act", block.activation, usual.activation,
         {"silu", "gelu_tanh", "gelu_erf", "relu", "relu_squared", "sigmoid", "softplus"});
  out.add_unless(usual.xielu, "xielu", block.xielu);
  out.add_unless(usual.norm_plus_one, "norm_plus_one", block.norm_plus_one);
  out.add_unless(usual.norm_bias, "norm_bias", block.norm_bias);
  out.add_unless(usual.states_normed_before, "states_normed_before", block.states_normed_before);
  out.add_unless(usual.parallel, "parallel", block.parallel);
  out.add_unless(usual.shared_norm, "shared_norm", block.shared_norm);
  out.add_unless(usual.gated, "gated", block.gated);
  out.add_unless(usual.attended_norm, "attended_norm", block.attended_norm);
  out.add_unless(usual.bare_attn_post_norm, "bare_attn_post_norm", block.bare_attn_post_norm);
  out.add_unless(usual.ffn_post_weighs_first, "ffn_post_weighs_first", block.ffn_post_weighs_first);
  out.add_unless(usual.gate_temperature, "residual_gate_temperature", block.gate_temperature);
  out.add_unless(usual.ffn_scale, "ffn_scale", block.ffn_scale);
  const StreamFactors& of_stream = block.stream_factors;
  out.add_unless(1.0, "attention_stream_factor", of_stream.attention);
  out.add_unless(1.0, "state_stream_factor", of_stream.state);
  out.add_unless(1.0, "ffn_stream_factor", of_stream.feed_forward);
  out.add_unless(usual.embed_multiplier, "embed_multiplier", block.embed_multiplier);
  out.add_unless(usual.residual_multiplier, "residual_multiplier", block.residual_multiplier);
  out.add_unless(usual.attention_in_multiplier, "attention_in_multiplier",
                 block.attention_in_multiplier);
  out.add_unless(usual.attention_out_multiplier, "attention_out_multiplier",
                 block.attention_out_multiplier);
  out.add_unless(usual.gate_multiplier, "gate_multiplier", block.gate_multiplier);
  out.add_unless(usual.down_multiplier, "down_multiplier", block.down_multiplier);
  out.add_unless(false, "attention_gated", block.attention_gate == AttentionGate::sigmoid);
  if (block.attention_gate != AttentionGate::sigmoid) {
    choice("attention_gate", block.attention_gate, usual.attention_gate,
           {"none", "sigmoid", "softplus", "sigmoid_of_heads", "softplus_of_heads"});
  }
  out.add_unless(usual.v_multiplier, "v_multiplier", block.v_multiplier);
  out.add_unless(usual.window_sinks, "window_sinks", block.window_sinks);
  out.add_unless(usual.differential, "differential_attention", block.differential);
  out.add_unless(usual.attention_scale, "attention_scale", block.attention_scale);
  out.add_unless(usual.attention_scale_by_layer, "attention_scale_by_layer",
                 block.attention_scale_by_layer);
  out.add_unless(usual.attention_scale_by_size, "attention_scale_by_size",
                 block.attention_scale_by_size);
  out.add_unless(usual.score_cap, "attn_logit_softcapping", block.score_cap);
}

void add_recurrence(const ModelConfig& config, ConfigNumbers& out) {
  if (!config.recurrence) return;
  const RecurrenceConfig& state = *config.recurrence;
  constexpr const char* kUpdates[] = {"delta", "add", "none"};
  out.add("state_update", kUpdates[static_cast<size_t>(state.update)]);
  out.add("state_k_heads", state.k_heads);
  out.add("state_k_dim", state.k_dim);
  out.add("state_v_heads", state.v_heads);
  out.add("state_v_dim", state.v_dim);
  out.add("state_conv_width", state.conv_width);
  const RecurrenceConfig usual;
  constexpr const char* kNorms[] = {"none", "heads", "groups", "groups_after_gate", "whole"};
  if (state.norm != usual.norm) out.add("state_norm", kNorms[static_cast<size_t>(state.norm)]);
  out.add_unless(usual.skip, "state_skip", state.skip);
  out.add_unless(usual.conv_bias, "state_conv_bias", state.conv_bias);
  out.add_unless(usual.bias, "state_bias", state.bias);
  out.add_unless(state.bias, "state_out_bias", state.out_bias);
  const StateMultipliers& by = state.multipliers;
  for (const auto& [name, multiplier] :
       {std::pair{"in", by.in}, std::pair{"gate", by.gate}, std::pair{"v", by.v},
        std::pair{"k", by.k}, std::pair{"q", by.q}, std::pair{"step", by.step},
        std::pair{"out", by.out}}) {
    out.add_unless(1.0, cat("state_", name, "_multiplier"), multiplier);
  }
  out.add_unless(usual.least_step, "state_least_step", state.least_step);
  out.add_unless(usual.most_step, "state_most_step", state.most_step);
  out.add_unless(usual.most_strength, "state_most_strength", state.most_strength);
  out.add_unless(usual.norm_eps, "state_norm_eps", state.norm_eps);
  out.add_unless(usual.steps_by_row, "state_steps_by_row", state.steps_by_row);
  out.add_unless(usual.least_log_decay, "state_least_log_decay", state.least_log_decay);
  out.add_unless(usual.rank, "state_rank", state.rank);
  out.add_unless(usual.full_gate, "state_full_gate", state.full_gate);
  out.add_unless(usual.from_v, "state_from_v", state.from_v);
  out.add_unless(usual.fixed_decays, "state_fixed_decays", state.fixed_decays);
  const DecayLayers& layers = state.decay_layers;
  out.add_unless(usual.decay_layers.first, "state_decay_first_layer", layers.first);
  out.add_unless(usual.decay_layers.divisor_eps, "state_decay_divisor_eps", layers.divisor_eps);
  out.add_unless(usual.activates, "state_activates", state.activates);
  out.add_unless(usual.qk_norm, "state_qk_norm", state.qk_norm);
  out.add_unless(int64_t{usual.rope}, "state_rope", int64_t{state.rope});
  out.add_unless(usual.norm_groups, "state_norm_groups", state.norm_groups);
  out.add_unless(false, "state_gate_sigmoid", state.gate == Activation::sigmoid);
}

void add_streams(const ModelConfig& config, ConfigNumbers& out) {
  out.add_unless(int64_t{0}, "laurel_rank", config.laurel_rank);
  if (config.shared_block) {
    out.add("num_mem_blocks", config.shared_block->blocks);
    out.add("adapter_rank", config.shared_block->rank);
    out.add_unless(false, "use_shared_attention_adapter", config.shared_block->adapts_attention);
  }
  if (!config.gate_cuts.empty()) {
    out.add("activation_sparsity", by_layer(config.n_layers(), [&](int64_t i) {
              return cat(config.gate_cuts[static_cast<size_t>(i)]);
            }));
  }
  if (config.hyper) {
    const HyperConfig usual, &hyper = *config.hyper;
    out.add("hc_mult", hyper.count);
    out.add_unless(usual.rank, "hc_lowrank", hyper.rank);
    out.add("hc_eps", hyper.eps);
    out.add_unless(usual.most_written, "hc_magnitude", hyper.most_written);
    out.add_unless(usual.rounds, "hc_sinkhorn_iters", hyper.rounds);
    out.add_unless(usual.eps_written, "hc_eps_written", hyper.eps_written);
    out.add_unless(usual.mean_head, "hc_mean_head", hyper.mean_head);
  }
  out.add_unless(int64_t{0}, "attn_res_block_size", config.attn_res_block);
  if (!config.streams) return;
  out.add("altup_num_inputs", config.streams->count);
  out.add("altup_active_idx", config.streams->active);
  out.add("altup_correct_scale", config.streams->scaled);
}

std::string score_name(RouterScore score) {
  switch (score) {
    case RouterScore::softmax:
      return "softmax";
    case RouterScore::softmax_of_chosen:
      return "softmax_of_chosen";
    case RouterScore::sigmoid:
      return "sigmoid";
    case RouterScore::sqrt_softplus:
      return "sqrt_softplus";
    case RouterScore::sparse_mixer:
      return "sparse_mixer";
  }
  assertion_failed("a RouterScore", __FILE__, __LINE__);
}

void add_experts(const ModelConfig& config, ConfigNumbers& out) {
  if (!config.experts) return;
  const ExpertsConfig& experts = *config.experts;
  const ExpertsConfig usual;
  const Routing& routing = experts.routing;
  out.add("num_experts", experts.count);
  out.add("num_experts_per_tok", routing.per_token);
  out.add("moe_intermediate_size", experts.hidden_dim);
  out.add("feed_forward", by_layer(config.n_layers(), [&](int64_t i) {
            return std::string(feed_forward_name(config.layer(i).feed_forward));
          }));
  out.add("router", score_name(routing.score));
  out.add_unless(usual.routing.near, "router_near", routing.near);
  out.add_unless(usual.routing.normalise, "norm_topk_prob", routing.normalise);
  out.add_unless(usual.routing.epsilon, "router_epsilon", routing.epsilon);
  out.add_unless(usual.routing.scale, "routed_scaling_factor", routing.scale);
  out.add_unless(usual.routing.groups, "n_group", routing.groups);
  out.add_unless(usual.routing.groups_kept, "topk_group", routing.groups_kept);
  if (routing.group_worth == GroupWorth::largest) out.add("group worth", "largest");
  out.add_unless(usual.routing.weigh_input, "weigh_input", routing.weigh_input);
  out.add_unless(usual.inner_dim, "moe_latent_size", experts.inner_dim);
  out.add_unless(usual.inner_norm, "moe_latent_norm", experts.inner_norm);
  out.add_unless(usual.inner_out_norm, "latent_moe_use_norm", experts.inner_out_norm);
  out.add_unless(usual.each_norm, "post_expert_norm", experts.each_norm);
  out.add_unless(usual.logit_multiplier, "router_multiplier", experts.logit_multiplier);
  out.add_unless(usual.choice_bias, "choice_bias", experts.choice_bias);
  out.add_unless(usual.shared_hidden_dim, "shared_expert_intermediate_size",
                 experts.shared_hidden_dim);
  out.add_unless(usual.fixed, "fixed_experts", experts.fixed);
  out.add_unless(usual.shared_gated, "shared_expert_gate", experts.shared_gated);
  out.add_unless(usual.beside_dense, "experts beside dense", experts.beside_dense);
  out.add_unless(usual.router_norm, "router_norm", experts.router_norm);
  out.add_unless(usual.factors, "per_expert_scale", experts.factors);
  out.add_unless(usual.multiplier, "experts_multiplier", experts.multiplier);
  out.add_unless(usual.post_norm, "experts_post_norm", experts.post_norm);
  out.add_unless(usual.table_layers, "num_hash_layers", experts.table_layers);
  out.add_unless(usual.identities, "zero_expert_num", experts.identities);
  out.add_unless(usual.shortcut, "experts_shortcut", experts.shortcut);
}

}  // namespace

std::vector<ConfigNumber> kv_config(const ModelConfig& config) {
  ConfigNumbers numbers;
  numbers.add("torch_dtype", torch_name(config.dtype));
  numbers.add("hidden_size", config.dim);
  numbers.add("intermediate_size", config.hidden_dim);
  numbers.add("rms_norm_eps", config.norm_eps);
  numbers.add_unless(int64_t{0}, "word_embed_proj_dim", config.embed_dim);
  numbers.add_unless(int64_t{0}, "learned_positions", config.position_rows);
  numbers.add_unless(int64_t{0}, "position_offset", config.position_offset);
  numbers.add_unless(false, "qkv_bias", config.qkv_bias);
  numbers.add_unless(false, "o_bias", config.o_bias);
  numbers.add_unless(false, "mlp_bias", config.mlp_bias);
  add_layers(config, numbers);
  add_ropes(config, numbers);
  if (config.latent) add_latent(*config.latent, numbers);
  if (config.shared_row) add_shared_row(config, numbers);
  if (config.ngrams) add_ngrams(*config.ngrams, numbers);
  if (config.indexer) add_indexer(*config.indexer, numbers);
  if (config.drafter) add_drafter(*config.drafter, numbers);
  add_block(config.block, numbers);
  numbers.add_unless(false, "bare_norms", config.bare_norms);
  numbers.add_unless(false, "embed_norm", config.embed_norm);
  numbers.add_unless(false, "bare_embed_norm", config.bare_embed_norm);
  numbers.add_unless(0.0, "post_norm_eps", config.post_norm_eps);
  numbers.add_unless(false, "qk_norm_rotated", config.qk_norm_rotated);
  add_recurrence(config, numbers);
  add_convs_and_distances(config, numbers);
  add_streams(config, numbers);
  add_experts(config, numbers);
  add_swiglus(config, numbers);
  return std::move(numbers).sorted();
}

}  // namespace fp8kv
