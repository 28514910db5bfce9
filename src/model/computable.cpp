#include "model/computable.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "model/computable_indexer.h"
#include "model/computable_rows.h"
#include "model/computable_streams.h"

namespace fp8kv {

void refuse_computing(const ModelConfig& config, const std::string& found,
                      const std::string& expected) {
  throw Error(
      cat(config.architecture, ": ", found, ", expected ", expected),
      "the forward pass computes no other models; see BlockConfig in src/core/model/block.h and "
      "src/model/computable.cpp");
}

namespace {

constexpr auto refuse = refuse_computing;

// Checks that a layer reads its own cache, or an earlier layer's with heads of the same number and
// size.
void check_cache(const ModelConfig& config, int64_t index) {
  const LayerDescription& layer = config.layer(index);
  const std::string name = cat("layer ", index);
  if (layer.cache_of == index) return;
  if (layer.cache_of < 0) refuse(config, cat(name, " has no cache"), "one");
  const std::string other = cat("layer ", layer.cache_of);
  if (layer.cache_of > index || !config.writes_cache(layer.cache_of)) {
    refuse(config, cat(name, " reads the cache of ", other), "that of a layer before it");
  }
  const LayerDescription& source = config.layer(layer.cache_of);
  if (source.n_kv_heads != layer.n_kv_heads || source.k_head_dim != layer.k_head_dim ||
      source.v_head_dim != layer.v_head_dim) {
    refuse(config, cat(name, " reads the cache of ", other, ", which has other heads"),
           "heads of one number and size");
  }
}

void check_layer(const ModelConfig& config, int64_t index) {
  const LayerDescription& layer = config.layer(index);
  const std::string name = cat("layer ", index);
  if (layer.mixing == Mixing::recurrent && config.recurrence) return;
  if (layer.state_beside && !config.recurrence) {
    refuse(config, cat(name, " keeps a state of unknown size beside its cache"),
           "RecurrenceConfig, or none");
  }
  if (layer.mixing == Mixing::none && layer.feed_forward != FeedForward::none) return;
  if (layer.mixing != Mixing::full && layer.mixing != Mixing::window &&
      layer.mixing != Mixing::chunks) {
    refuse(config, cat(name, " mixes tokens by ", quote(mixing_name(layer.mixing))),
           "'full', 'window' or 'chunks'");
  }
  const int64_t heads = config.n_heads_of(index);
  if (layer.n_kv_heads < 1 || heads % layer.n_kv_heads != 0) {
    refuse(config, cat(name, " has ", layer.n_kv_heads, " KV heads"),
           cat("a number that divides ", heads, " heads"));
  }
  check_cache(config, index);
}

// Checks that all layers with attention use latent attention, in the latent's sizes, or that none
// does.
void check_latent(const ModelConfig& config) {
  const LatentConfig latent = config.latent.value_or(LatentConfig());
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    if (config.latent && !config.attends(index)) continue;
    const LayerDescription& layer = config.layer(index);
    const bool fits = !config.latent || (layer.n_kv_heads == 1 && layer.v_head_dim == latent.rank &&
                                         layer.own_k_dim() == latent.rope_dim);
    if (layer.v_in_k == config.latent.has_value() && fits) continue;
    refuse(config, cat("layer ", index, layer.v_in_k ? " has V in K" : " has V beside K"),
           config.latent
               ? cat("one KV head of ", latent.rope_dim, " and ", latent.rank, " elements")
               : "latent attention, or V of its own");
  }
  check_indexer(config);
  if (!config.latent) return;
  if (config.block.qk_norm != QkNorm::none || config.block.score_bias != ScoreBias::none) {
    refuse(config, "latent attention has norms of Q and K, or a bias of its scores", "neither");
  }
  if (latent.rank % 2 != 0) {
    refuse(config, cat("the latent has ", latent.rank, " elements"), "an even number");
  }
  for (int64_t index = 0; latent.rope_dim == 0 && index < config.n_layers(); ++index) {
    if (!config.turns(index)) continue;
    refuse(config, cat("the latent of layer ", index, " has no elements that rotate"),
           "some, or no rotation");
  }
}

void check_ropes(const ModelConfig& config) {
  const auto known = static_cast<int64_t>(config.ropes.size());
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    const int32_t rope = config.layer_ropes[static_cast<size_t>(index)];
    if (rope >= -1 && rope < known) continue;
    refuse(config, cat("layer ", index, " has the rotation ", rope),
           cat("-1, which is none, or one of ", known));
  }
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    const int32_t number = config.layer_ropes[static_cast<size_t>(index)];
    if (number < 0) continue;
    const RopeConfig& rope = config.ropes[static_cast<size_t>(number)];
    const int64_t size = config.layer(index).k_head_dim;
    if (size > 0 && size != config.rope_head_dim(number)) {
      refuse(config,
             cat("layers with heads of ", size, " and of ", config.rope_head_dim(number),
                 " elements have the rotation ", number),
             "one for each size");
    }
    if (size > 0 && (rope.rotary_dim % 2 != 0 || rope.rotary_dim > size)) {
      refuse(config, cat(rope.rotary_dim, " elements of a head are rotated"),
             cat("an even number of its ", size));
    }
    const bool part = rope.rotary_dim > 0 && rope.rotary_dim < size;
    if (rope.q_growth != 0.0 && part && !config.latent) {
      refuse(config, "Q grows with its position, and rotates in a part of each head",
             "one of both, or latent attention");
    }
    if (rope.k_factor != 1.0 && part) {
      refuse(
          config,
          cat("K has a factor where ", rope.rotary_dim, " of its ", size, " elements are rotated"),
          "all of them");
    }
  }
}

void check_block(const ModelConfig& config) {
  const BlockConfig& block = config.block;
  for (int64_t index = 0; block.parallel && index < config.n_layers(); ++index) {
    const LayerDescription& layer = config.layer(index);
    if (layer.mixing != Mixing::none && layer.feed_forward != FeedForward::none) continue;
    refuse(config, cat("layer ", index, " has one block, where others have two side by side"),
           "blocks in turn");
  }
  if (block.xielu && (block.gated || config.experts)) {
    refuse(config, "xIELU is in blocks with a gate or experts", "neither");
  }
  if (block.shared_norm && !block.parallel) {
    refuse(config, "blocks that come one after another share a norm", "parallel ones");
  }
  if (block.parallel && block.norm_place == NormPlace::after_add) {
    refuse(config, "parallel blocks have norms of the sum (after_add)", "norms of another place");
  }
  if (block.norm_bias && block.norm != NormKind::layer) {
    refuse(config, "norms by the root mean square have a bias", "none, or NormKind::layer");
  }
  const bool layer_norms = block.norm == NormKind::layer;
  if (block.qk_norm == QkNorm::own_heads && !layer_norms) {
    refuse(config, "heads have weights of their own for a norm by the root mean square",
           "NormKind::layer");
  }
  if (config.bare_norms && (block.norm_place != NormPlace::before || block.norm_bias)) {
    refuse(config, "norms without weights are behind blocks, or have a bias",
           "norms before the blocks");
  }
  const bool by_head = block.qk_norm == QkNorm::per_head || is_plain(block.qk_norm);
  if (config.qk_norm_rotated && (!by_head || block.v_norm)) {
    refuse(config, "Q and K are normalised after their rotation",
           "QkNorm::per_head or plain, and no norm of V");
  }
  for (int64_t i = 0; config.qk_norm_rotated && i < config.n_layers(); ++i) {
    if (!is_plain(block.qk_norm) || !config.attends(i) || config.turns(i)) continue;
    refuse(config, cat("layer ", i, " norms Q and K after a rotation, and has none"), "a rotation");
  }
  for (const RopeConfig& rope : config.ropes) {
    if (!config.qk_norm_rotated || (rope.q_growth == 0.0 && rope.k_factor == 1.0)) continue;
    refuse(config, "Q and K are normalised after a rotation that scales one of them",
           "a rotation that turns both alike");
  }
  if (block.qk_norm_bias && (block.qk_norm != QkNorm::per_head || !layer_norms)) {
    refuse(config, "norms of Q and K have a bias", "QkNorm::per_head and NormKind::layer");
  }
}

// Checks what a state does with Q, K and V before it takes them in.
void check_state_inputs(const ModelConfig& config, const RecurrenceConfig& state) {
  if (state.norm_groups > 0 &&
      (state.norm != StateNorm::groups || state.v_width() % state.norm_groups != 0)) {
    refuse(config, cat("the output of a state is normed in ", state.norm_groups, " groups"),
           "StateNorm::groups, and groups of one size");
  }
  const bool plain = state.activates && !state.qk_norm && state.rope < 0;
  if (!plain && (state.conv_width > 0 || state.from_v || !state.recurs())) {
    refuse(config, "Q and K of a state are normed or rotated, or go into it without SiLU",
           "a state without a convolution");
  }
  if (state.rope < 0) return;
  const auto rope = static_cast<size_t>(state.rope);
  const bool known = rope < config.ropes.size();
  const int64_t turns = known ? config.ropes[rope].rotary_dim : 0;
  const bool shared = std::find(config.layer_ropes.begin(), config.layer_ropes.end(), state.rope) !=
                      config.layer_ropes.end();
  if (known && !shared && turns % 2 == 0 && turns <= state.k_dim &&
      config.ropes[rope].q_growth == 0.0 && config.ropes[rope].k_factor == 1.0) {
    return;
  }
  refuse(config, cat("a state has the rotation ", state.rope),
         "one of its own, of an even number of a head's elements, which turns Q and K alike");
}

// Checks what only layers that keep a state have.
void check_states(const ModelConfig& config) {
  if (config.block.states_normed_before && config.block.norm_place != NormPlace::after) {
    refuse(config, "layers that keep a state have norms of another place than others",
           "norms after the blocks in the others");
  }
  if (!config.recurrence) return;
  const RecurrenceConfig& state = *config.recurrence;
  if (state.least_log_decay != 0.0 && (!state.steps_by_row || !(state.least_log_decay < 0.0))) {
    refuse(config, cat("decays have the least logarithm ", state.least_log_decay),
           "one below 0, where rows decay by steps of their own");
  }
  const bool one_head = state.k_heads == 1 && state.v_heads == 1;
  if (state.from_v &&
      (state.update != StateUpdate::add || state.steps_by_row || !one_head || state.rank == 0 ||
       state.norm != StateNorm::none || state.multipliers != StateMultipliers())) {
    refuse(config, "Q, K and steps of a state come from V",
           "StateUpdate::add, one head, a rank, and neither multipliers nor norms of the output");
  }
  if (state.from_v && state.k_dim > kMostRatedRows) {
    refuse(config, cat("a state has ", state.k_dim, " rows with rates of their own"),
           cat(kMostRatedRows, " at most"));
  }
  if (state.fixed_decays &&
      (state.update != StateUpdate::add || state.from_v || state.rank > 0 || state.skip ||
       state.least_step != 1.0 || state.most_step != 1.0 || state.multipliers.step != 1.0)) {
    refuse(config, "the decays of a state are fixed",
           "StateUpdate::add, steps of 1, and no rank, skip or multiplier of steps");
  }
  check_state_inputs(config, state);
  if (!state.steps_by_row) return;
  if (state.update == StateUpdate::delta && state.k_heads == state.v_heads) return;
  refuse(config, "rows of a state decay by steps of their own",
         "StateUpdate::delta, and as many heads of V as of K");
}

// Checks that no block with multipliers of its own has a feature that is computed without them.
void check_multipliers(const ModelConfig& config) {
  const BlockConfig& block = config.block;
  if (block.attention_in_multiplier != 1.0 && !norms_input(block.norm_place)) {
    refuse(config, "rows that go into attention are multiplied and not normed", "both or neither");
  }
  if (block.q_multiplier != 1.0 && !is_plain(block.qk_norm)) {
    refuse(config, "Q is multiplied and not normed, or normed with weights",
           "a norm without weights");
  }
  if (block.v_multiplier != 1.0 &&
      (config.latent || config.qk_norm_rotated || block.v_norm || block.qk_norm != QkNorm::none)) {
    refuse(config, "V is multiplied, and there is a latent or a norm of heads", "neither");
  }
  const bool feed_forward = block.gate_multiplier != 1.0 || block.down_multiplier != 1.0;
  if (feed_forward && (config.experts || !block.gated)) {
    refuse(config, "the feed-forward part has multipliers, and experts or no gate",
           "a gate and no experts");
  }
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    if (!config.layer(index).state_beside || block.norm_place == NormPlace::before) continue;
    refuse(config,
           cat("layer ", index, " has attention and a state side by side, with a norm of ",
               "what they give"),
           "a norm before them alone");
  }
}

// Checks that a convolution without a state has nothing that only states have.
void check_convolution(const ModelConfig& config) {
  if (!config.recurrence || config.recurrence->recurs()) return;
  const RecurrenceConfig& state = *config.recurrence;
  StateMultipliers within = state.multipliers;
  within.in = within.out = 1.0;
  if (state.norm != StateNorm::none || state.skip || within != StateMultipliers() ||
      state.k_width() != state.v_width()) {
    refuse(config, "a convolution without a state has a norm, multipliers or other widths",
           "StateNorm::none and one width");
  }
}

// Checks that short convolutions and biases of distances are in blocks for which the forward pass
// computes them.
void check_short_convs(const ModelConfig& config) {
  const BlockConfig& block = config.block;
  if (!config.short_convs && !config.distances) return;
  const int64_t width = config.short_convs ? config.short_convs->width : 1;
  if (width < 1 || width > kMostConvWidth) {
    refuse(config, cat("short convolutions see ", width, " tokens"), cat("1 to ", kMostConvWidth));
  }
  const bool by_head = block.qk_norm == QkNorm::none || block.qk_norm == QkNorm::per_head;
  if (config.latent || config.indexer || config.recurrence || config.streams || config.hyper ||
      config.qk_norm_rotated || !by_head || block.v_norm || block.v_multiplier != 1.0 ||
      block.parallel || block.score_bias != ScoreBias::none ||
      block.norm_place != NormPlace::before) {
    refuse(config, "short convolutions or biases of distances are in blocks of another kind",
           "attention with K and V of its own, after a norm, and one stream");
  }
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    const LayerDescription& layer = config.layer(index);
    const bool two_blocks =
        config.writes_cache(index) && !layer.v_is_k && layer.feed_forward != FeedForward::none;
    if (two_blocks) continue;
    refuse(config, cat("layer ", index, " has short convolutions or biases of distances"),
           "attention with a cache of its own, and a feed-forward part");
  }
}

// Checks that differential attention has two halves of heads, which the forward pass computes by
// the op of plain attention.
void check_differential(const ModelConfig& config) {
  const BlockConfig& block = config.block;
  if (!block.differential) return;
  if (config.latent || config.shared_row || config.indexer || config.distances || block.sinks ||
      block.score_bias != ScoreBias::none || block.attention_gate != AttentionGate::none ||
      block.norm != NormKind::rms) {
    refuse(config, "differential attention is beside attention of another kind",
           "K and V of their own, plain scores, and norms by the root mean square");
  }
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    const LayerDescription& layer = config.layer(index);
    if (!config.attends(index) || layer.n_kv_heads % 2 == 0) continue;
    refuse(config, cat("differential attention has ", layer.n_kv_heads, " KV heads"),
           "an even number");
  }
}

// Checks that clamped SwiGLUs are in blocks for which the forward pass computes them.
void check_swiglus(const ModelConfig& config) {
  const BlockConfig& block = config.block;
  if (config.swiglus.empty()) return;
  if (!block.gated || block.xielu || !config.gate_cuts.empty() || block.gate_multiplier != 1.0) {
    refuse(config, "a clamped SwiGLU is in blocks without a gate, or with a gate of another kind",
           "plain gates");
  }
}

void check_experts(const ModelConfig& config) {
  const BlockConfig& block = config.block;
  if (!config.experts) return;
  const ExpertsConfig& experts = *config.experts;
  if (block.parallel && experts.beside_dense) {
    refuse(config, "blocks side by side have experts beside a dense part", "blocks in turn");
  }
  if (!block.gated && experts.bias) {
    refuse(config, "experts without a gate have biases", "none");
  }
  if (experts.beside_dense && block.norm_place != NormPlace::around) {
    refuse(config, "experts are beside a dense part in blocks that are not normed on both sides",
           "NormPlace::around");
  }
  if (experts.post_norm && block.norm_place != NormPlace::before) {
    refuse(config, "the output of experts has a norm of its own in blocks with norms of the output",
           "NormPlace::before");
  }
  if (experts.fixed > 0 && (!experts.choice_bias || experts.routing.groups > 1 || experts.bias ||
                            experts.routing.per_token <= experts.fixed)) {
    refuse(config, "the router also weighs experts that every token goes to",
           "a choice bias, one group, no biases of experts, and others to choose");
  }
  if (experts.each_norm &&
      (experts.beside_dense || experts.identities > 0 || experts.routing.weigh_input ||
       experts.routing.per_token > kMostMixed)) {
    refuse(config, "the outputs of experts are normed one by one",
           cat(kMostMixed, " experts of a token at most, which weigh outputs"));
  }
  if ((experts.inner_norm || experts.inner_out_norm) && experts.inner_dim == 0) {
    refuse(config, "experts have norms of a narrowed stream", "one that is narrowed");
  }
  if (experts.beside_dense != experts.router_norm) {
    refuse(config, "the router has a norm of its own, or experts are beside a dense part",
           "both or neither");
  }
}

}  // namespace

void check_computable(const ModelConfig& config) {
  for (int64_t index = 0; index < config.n_layers(); ++index) check_layer(config, index);
  check_latent(config);
  check_ropes(config);
  check_block(config);
  check_multipliers(config);
  check_states(config);
  check_convolution(config);
  check_experts(config);
  check_swiglus(config);
  check_differential(config);
  check_short_convs(config);
  check_shared_row(config);
  check_streams_computable(config);
}

}  // namespace fp8kv
