#include "model/computable_streams.h"

#include "base/error.h"

namespace fp8kv {
namespace {

// Checks that each layer has two blocks for `streams` to be around.
void check_two_parts(const ModelConfig& config, const char* streams) {
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    if (config.attends(index) != config.keeps_state(index) &&
        config.layer(index).feed_forward != FeedForward::none)
      continue;
    refuse_computing(config, cat("layer ", index, " has ", streams),
                     "attention or a state, and a feed-forward part");
  }
}

// Checks that gate cuts, LAuReL and streams are in blocks for which the forward pass computes them.
void check_streams(const ModelConfig& config) {
  const BlockConfig& block = config.block;
  if (!config.gate_cuts.empty() && !block.gated) {
    refuse_computing(config, "a gate that is cut off is in blocks without one", "gated ones");
  }
  if (config.laurel_rank > 0 && (block.parallel || !norms_input(block.norm_place))) {
    refuse_computing(
        config, "attention has a way around it in blocks side by side, or without a norm before",
        "blocks in turn with one");
  }
  if (!config.streams) return;
  const StreamsConfig& streams = *config.streams;
  if (streams.count < 2 || streams.count > kMostStreams || streams.active < 0 ||
      streams.active >= streams.count) {
    refuse_computing(config,
                     cat("stream ", streams.active, " of ", streams.count, " is computed with"),
                     cat("one of 2 to ", kMostStreams));
  }
  if (config.layer_input_dim == 0 || config.recurrence || block.layer_scale) {
    refuse_computing(config, "several streams are in layers that keep a state, or have a scale",
                     "layers with attention and an input of their own");
  }
}

// Checks that hyper-connections are in blocks for which the forward pass computes them.
void check_hyper(const ModelConfig& config) {
  if (!config.hyper) return;
  const BlockConfig& block = config.block;
  if (config.hyper->count < 2 || config.hyper->count > kMostStreams) {
    refuse_computing(config, cat(config.hyper->count, " streams are connected"),
                     cat("2 to ", kMostStreams));
  }
  if (config.hyper->rank > 0 && config.hyper->rounds > 0) {
    refuse_computing(config, "streams mix, and their elements have weights of their own",
                     "one of both");
  }
  const bool inputs = config.layer_input_dim > 0 || config.laurel_rank > 0 || config.streams;
  if (inputs || block.layer_scale || block.parallel) {
    refuse_computing(config, "hyper-connections are in layers with another way around their blocks",
                     "attention, then a feed-forward part");
  }
  const bool multiplied = block.residual_multiplier != 1.0 ||
                          block.attention_out_multiplier != 1.0 || block.down_multiplier != 1.0 ||
                          (config.recurrence && config.recurrence->multipliers.out != 1.0);
  const bool of_experts =
      config.experts && (config.experts->beside_dense || config.experts->post_norm ||
                         config.experts->multiplier != 1.0);
  const NormPlace place = config.hyper->rank > 0 ? NormPlace::none : NormPlace::before;
  if (block.norm_place != place || multiplied || of_experts) {
    refuse_computing(config,
                     "hyper-connections are around blocks whose output is normed or multiplied",
                     "plain outputs, and inputs that are normed once");
  }
  check_two_parts(config, "hyper-connections");
}

// Checks that attention residuals are in blocks for which the forward pass computes them.
void check_attn_res(const ModelConfig& config) {
  if (config.attn_res_block == 0) return;
  const BlockConfig& block = config.block;
  const int64_t sources = 1 + config.attn_res_blocks(config.n_layers());
  if (config.attn_res_block < 0 || sources > kMostMixed) {
    refuse_computing(config, cat("attention residuals have ", sources, " sources"),
                     cat("2 to ", kMostMixed));
  }
  const bool others = config.streams || config.hyper || config.has_shortcut() ||
                      config.layer_input_dim > 0 || config.laurel_rank > 0 || config.short_convs;
  const bool multiplied = block.residual_multiplier != 1.0 ||
                          block.attention_out_multiplier != 1.0 || block.down_multiplier != 1.0 ||
                          (config.recurrence && config.recurrence->multipliers.out != 1.0);
  const bool of_experts =
      config.experts && (config.experts->beside_dense || config.experts->post_norm ||
                         config.experts->multiplier != 1.0);
  if (others || multiplied || of_experts || block.layer_scale || block.parallel ||
      block.norm_place != NormPlace::before) {
    refuse_computing(config, "attention residuals are around blocks of another kind",
                     "one stream, plain outputs, and norms before the blocks alone");
  }
  check_two_parts(config, "attention residuals");
}

// Checks that residual gates and norms of heads are in blocks for which the forward pass computes
// them.
void check_residual_gates(const ModelConfig& config) {
  const BlockConfig& block = config.block;
  const bool around = block.norm_place == NormPlace::around && !block.parallel;
  const bool plain = !config.streams && !config.hyper && config.laurel_rank == 0 &&
                     !config.has_shortcut() && !config.recurrence;
  const bool gates =
      block.gate_temperature > 0.0 || block.bare_attn_post_norm || block.ffn_post_weighs_first;
  if (gates && (!around || !plain)) {
    refuse_computing(config, "gates or norms of another kind are where outputs meet the stream",
                     "attention and feed-forward parts in turn, with norms around both");
  }
  if (block.attended_norm && (config.latent || config.shared_row)) {
    refuse_computing(config, "the heads of a latent's output are normed",
                     "attention with V of its own");
  }
}

// Checks that tables of experts are in layers that get the tokens' rows of them.
void check_expert_tables(const ModelConfig& config) {
  if (!config.experts || config.experts->table_layers == 0) return;
  if (config.hyper && !config.ngrams && config.layer_input_dim == 0) return;
  refuse_computing(config, "tables give the experts of tokens in layers with another input",
                   "hyper-connections, and no other input");
}

// Checks that experts whose output waits are in blocks for which the forward pass computes them.
void check_shortcut(const ModelConfig& config) {
  if (!config.has_shortcut()) return;
  const BlockConfig& block = config.block;
  const ExpertsConfig& experts = *config.experts;
  if (config.streams || config.hyper || config.layer_input_dim > 0 || block.layer_scale ||
      block.parallel || experts.beside_dense || experts.post_norm || experts.multiplier != 1.0 ||
      block.norm_place != NormPlace::before) {
    refuse_computing(config, "the output of experts waits in layers with another way around them",
                     "one stream, and norms before the blocks alone");
  }
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    if (!config.attends(index) || config.keeps_state(index) || !config.has_dense(index)) {
      refuse_computing(config, cat("layer ", index, " is beside experts whose output waits"),
                       "attention and a dense part");
    }
    const bool last = index + 1 == config.n_layers();
    if (!config.has_experts(index) || (!last && !config.has_experts(index + 1))) continue;
    refuse_computing(config, cat("layer ", index, " has experts whose output waits"),
                     "a layer without experts behind it");
  }
}

// Checks that n-grams are in layers for which the forward pass computes them.
void check_ngrams(const ModelConfig& config) {
  if (!config.ngrams) return;
  const NgramConfig& ngrams = *config.ngrams;
  if (!config.hyper)
    refuse_computing(config, "n-grams are in layers with one stream", "hyper-connections");
  for (const int64_t index : ngrams.layers) {
    if (index < config.n_layers() && config.keeps_state(index) && config.recurrence->recurs()) {
      continue;
    }
    refuse_computing(config, cat("layer ", index, " has n-grams"), "a layer that keeps a state");
  }
  const int64_t before = (ngrams.conv_width - 1) * ngrams.longest;
  if (before <= kMostConvBefore) return;
  refuse_computing(config, cat("a convolution over n-grams reaches ", before, " tokens back"),
                   cat(kMostConvBefore, " at most"));
}

// Checks that a normed stream goes on through blocks for which the forward pass computes it.
void check_carried(const ModelConfig& config) {
  const BlockConfig& block = config.block;
  if (block.norm_place != NormPlace::carried) {
    if (block.stream_factors == StreamFactors()) return;
    refuse_computing(config, "the stream is multiplied where outputs join it",
                     "NormPlace::carried");
  }
  if (block.parallel || config.laurel_rank > 0 || config.layer_input_dim > 0) {
    refuse_computing(config, "the normed stream goes on beside blocks of another kind",
                     "blocks in turn, on one stream");
  }
}

// Checks that shared blocks are in layers for which the forward pass computes them.
void check_shared_blocks(const ModelConfig& config) {
  if (!config.shared_block) return;
  const BlockConfig& block = config.block;
  const bool multiplied = block.residual_multiplier != 1.0 || block.v_multiplier != 1.0 ||
                          block.attention_in_multiplier != 1.0 ||
                          block.attention_out_multiplier != 1.0 || block.gate_multiplier != 1.0 ||
                          block.down_multiplier != 1.0;
  if (config.streams || config.hyper || config.has_shortcut() || config.experts || config.latent ||
      config.shared_row || config.indexer || config.short_convs || config.distances ||
      config.layer_input_dim > 0 || config.laurel_rank > 0 || config.qk_norm_rotated ||
      block.layer_scale || block.parallel || block.v_norm || block.xielu || !block.gated ||
      block.qk_norm != QkNorm::none || block.norm_place != NormPlace::before || multiplied ||
      config.bare_norms || !config.hidden_dims.empty() || !config.swiglus.empty() ||
      !config.gate_cuts.empty()) {
    refuse_computing(config, "shared blocks are in layers of another kind",
                     "plain attention, a gated feed-forward part, and norms before both alone");
  }
  if (!config.recurrence || config.recurrence->multipliers != StateMultipliers()) {
    refuse_computing(config, "shared blocks are in layers without a state, or with multipliers",
                     "a plain state in every layer");
  }
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    const bool fed = config.has_dense(index);
    if (config.keeps_state(index) && fed == config.attends(index)) continue;
    refuse_computing(config, cat("layer ", index, " is beside shared blocks"),
                     "a state, alone or with attention and a feed-forward part");
  }
}

}  // namespace

void check_streams_computable(const ModelConfig& config) {
  check_carried(config);
  check_shared_blocks(config);
  check_streams(config);
  check_hyper(config);
  check_attn_res(config);
  check_residual_gates(config);
  check_expert_tables(config);
  check_shortcut(config);
  check_ngrams(config);
}

}  // namespace fp8kv
