#include "model/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "core/numbers/host_view.h"
#include "model/computable.h"
#include "model/parts/project_rotated.h"
#include "model/parts/projections.h"
#include "model/parts/scores/score_bias.h"
#include "model/parts/short_convs.h"
#include "model/weights/check_rows.h"

namespace fp8kv {
namespace {

// Whether every block's output is added unchanged.
bool all_add_plainly(const ModelConfig& config) {
  const BlockConfig& block = config.block;
  const double of_state = config.recurrence ? config.recurrence->multipliers.out : 1.0;
  const NormPlace place = block.norm_place;
  return adds_plainly(place, block, block.attention_out_multiplier) &&
         adds_plainly(place, block, block.down_multiplier) && adds_plainly(place, block, of_state);
}

const ModelConfig& checked(const ModelConfig& config) {
  check_computable(config);
  check_rows(config);
  return config;
}

}  // namespace

Forward::Forward(Backend& backend, const ModelConfig& config, int64_t max_rows,
                 int64_t max_positions)
    : backend_(backend),
      config_(checked(config)),
      memory_(backend, backend.activation_dtype(config.dtype), max_rows),
      ropes_(memory_, config, max_positions) {
  normed_ = memory_.rows(config.attention_in_dim());
  int64_t q_size = 0, k_size = 0, v_size = 0, attended_size = 0;
  int64_t hidden_dim = 0;
  bool any_dense = false;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    const LayerDescription& layer = config.layer(i);
    q_size = std::max(q_size, config.n_heads_of(i) * layer.k_head_dim);
    k_size = std::max(k_size, layer.n_kv_heads * layer.own_k_dim());
    v_size = std::max(v_size, layer.n_kv_heads * layer.v_head_dim);
    attended_size = std::max(attended_size, config.n_heads_of(i) * layer.v_head_dim);
    any_dense = any_dense || (config.has_dense(i) && !config.shared_block);
    hidden_dim = std::max(hidden_dim, config.hidden_dim_of(i));
  }
  q_ = memory_.rows(q_size);
  k_ = memory_.rows(k_size);
  v_ = memory_.rows(v_size);
  attended_ = memory_.rows(attended_size);
  if (config.block.attended_norm) attended_normed_ = memory_.rows(attended_size);
  if (config.block.attention_gate != AttentionGate::none) attention_gate_.emplace(memory_, config);
  if (any_dense) dense_.emplace(memory_, config, hidden_dim);
  if (config.layer_input_dim > 0) layer_gate_ = memory_.rows(config.layer_input_dim);
  if (config.recurrence) state_.emplace(memory_, config, ropes_);
  if (config.experts) experts_.emplace(memory_, config);
  if (config.latent) latent_.emplace(memory_, config);
  if (config.shared_row) shared_row_.emplace(memory_, config, max_positions);
  if (IndexerForward::is_needed(config, max_positions)) {
    indexer_.emplace(memory_, config, max_positions);
  }
  if (config.streams) streams_.emplace(memory_, config);
  if (config.hyper) hyper_.emplace(memory_, config);
  if (config.attn_res_block > 0) attn_res_.emplace(memory_, config);
  if (config.ngrams) ngrams_.emplace(memory_, config);
  if (config.has_shortcut()) shortcut_.emplace(memory_, config);
  if (config.shared_block) shared_block_.emplace(memory_, config);
  if (config.laurel_rank > 0) laurel_.emplace(memory_, config);
  if (config.distances) distances_.emplace(memory_, config, max_positions);
  if (config.block.differential) differential_.emplace(memory_, config);
  if (config.experts || config.hyper || attn_res_ || config.short_convs || config.block.ffn_scale ||
      !all_add_plainly(config)) {
    output_ = memory_.rows(config.dim);
  }
  if (config.experts && (config.experts->beside_dense || config.block.parallel)) {
    mixed_ = memory_.rows(config.dim);
  }
  if (config.embed_dim > 0) down_ = memory_.rows(config.embed_dim);
  if (config.block.score_bias != ScoreBias::none) {
    const std::vector<float> bias = score_bias_table(config, max_positions);
    score_bias_ = memory_.make(host_view(bias, Shape{config.n_heads, max_positions}));
  }
}

void Forward::add_ngrams(const LayerWeights& weights, const TensorView& x, const LayerStep& step) {
  if (weights.ngrams) ngrams_->run(*weights.ngrams, step.input.value(), x, step.batch, step.state);
}

TensorView Forward::recur(const LayerWeights& weights, const ConstTensorView& rows,
                          const Batch& batch, const LayerState& state) {
  const ConstTensorView x = hyper_      ? hyper_->read(weights.attn_hyper.value(), rows)
                            : attn_res_ ? attn_res_->read(weights.attn_res.value(), rows)
                                        : rows;
  const double multiplier = config_.recurrence->multipliers.in;
  return state_->run(*weights.state, entered(x, attn_input(weights, x.shape[0]), multiplier), batch,
                     state);
}

void Forward::count_experts(const std::optional<TensorView>& counts) {
  if (experts_) experts_->count(counts);
}

void Forward::show_projected(std::function<void(const AttentionInputs& inputs)> see) {
  see_projected_ = std::move(see);
}

TensorView Forward::view_of(const Tensor& buffer, int64_t rows, int64_t width) const {
  FP8KV_ASSERT(rows <= buffer.view().shape[0]);
  return {buffer.view().data, memory_.activation(), Shape{rows, width}};
}

void Forward::layer(int64_t index, const LayerWeights& weights, const TensorView& x,
                    const LayerStep& step) {
  MixedRows mixed;
  add_ngrams(weights, x, step);
  if (config_.attends(index)) {
    AttentionInputs inputs = project(index, weights, x, step);
    if (step.part == LayerPart::whole) {
      inputs.chosen = choose(index, weights, inputs, step.batch, step.choice);
    }
    if (see_projected_) see_projected_(inputs);
    if (step.part == LayerPart::up_to_kv) return;
    const int64_t n = x.shape[0], heads = config_.n_heads_of(index);
    const int64_t size = config_.layer(index).v_head_dim;
    const TensorView attended = reshaped(view_of(attended_, n, heads * size), {n, heads, size});
    attend(index, inputs, step.batch, step.kv, attended);
    mixed.attended = attended;
  }
  if (config_.recurs_beside(index)) mixed.read = recur(weights, x, step.batch, step.state);
  finish(weights, mixed, x, step);
}

AttentionInputs Forward::project(int64_t index, const LayerWeights& weights, const TensorView& rows,
                                 const LayerStep& step) {
  if (streams_) streams_->predict(*weights.streams, rows);
  const TensorView x = streams_    ? streams_->active(rows)
                       : hyper_    ? hyper_->read(weights.attn_hyper.value(), rows)
                       : attn_res_ ? attn_res_->read(weights.attn_res.value(), rows)
                       : shortcut_ ? shortcut_->stream(rows)
                                   : rows;
  const int64_t n = x.shape[0];
  const LayerDescription& layer = config_.layer(index);
  const int64_t heads = config_.n_heads_of(index), size = layer.k_head_dim;
  const int64_t kv_heads = config_.writes_cache(index) ? layer.n_kv_heads : 0;
  const int64_t k_size = layer.own_k_dim(), v_size = layer.v_head_dim;
  AttentionInputs inputs{
      reshaped(view_of(q_, n, heads * size), {n, heads, size}),
      reshaped(view_of(k_, n, kv_heads * k_size), {n, kv_heads, k_size}),
      reshaped(view_of(v_, n, kv_heads * v_size), {n, kv_heads, v_size}),
      weights.sinks,
      {},
      {},
      step.state.index_pool,
      x,
      weights.differential,
  };
  const InputNorm in = attn_input(weights, n);
  const double multiplier = config_.block.attention_in_multiplier;
  const RopeAppend args = ropes_.rotation(config_.layer_ropes[static_cast<size_t>(index)], inputs,
                                          step.batch, step.kv, step.magnitudes);
  if (latent_) {
    latent_->project(weights, entered(x, in, multiplier), inputs.q, inputs.k, inputs.v);
    ropes_.grow_q(config_.layer_ropes[static_cast<size_t>(index)], args);
    backend_.rope_append(args);
  } else if (shared_row_) {
    shared_row_->project(index, weights, entered(x, in, multiplier), args, step.state.pool);
    backend_.rope_append(ropes_.rotation(-1, inputs, step.batch, step.kv, step.magnitudes));
  } else if (shared_block_) {
    shared_block_->project(weights, entered(x, in, multiplier), args);
  } else if (config_.qk_norm_rotated) {
    project_rotated(backend_, entered(x, in, multiplier), weights.attn, args,
                    ropes_.rotation(-1, inputs, step.batch, step.kv, step.magnitudes));
  } else if (config_.short_convs || config_.distances) {
    const ConstTensorView entering = entered(x, in, multiplier);
    project_convolved(backend_, entering, weights, args, {step.batch, step.state});
    if (weights.distance) inputs.distances = distances_->run(index, *weights.distance, entering);
  } else if (config_.block.v_multiplier != 1.0) {
    backend_.linear(entered(x, in, multiplier), projections_of(weights.attn, args));
    multiply(reshaped(inputs.v, {n, kv_heads * v_size}), config_.block.v_multiplier);
    backend_.rope_append(args);
  } else if (multiplier != 1.0) {
    backend_.project_append(entered(x, in, multiplier), {}, weights.attn, args);
  } else {
    backend_.project_append(x, in, weights.attn, args);
  }
  return inputs;
}

std::optional<ConstTensorView> Forward::choose(int64_t index, const LayerWeights& weights,
                                               const AttentionInputs& inputs, const Batch& batch,
                                               const TokenChoice& choice) {
  if (!indexer_ || (!config_.indexer->is_dsa() && !weights.indexer)) return std::nullopt;
  FP8KV_ASSERT(choice.chosen.data != nullptr);
  if (weights.indexer) {
    const int64_t n = inputs.q.shape[0];
    // Attention that makes Q by way of a vector leaves its normed input in memory.
    const ConstTensorView rows = latent_ || shared_row_
                                     ? view_of(normed_, n, config_.dim)
                                     : entered(inputs.x, attn_input(weights, n), 1.0);
    IndexerRows read{.x = rows, .q_vector = rows, .batch = batch, .pool_state = inputs.index_pool};
    if (latent_) read.q_vector = latent_->q_vector(n);
    if (shared_row_) {
      read.q_vector = shared_row_->q_vector(n);
      read.pool_rope = shared_row_->pool_rope(index);
    }
    indexer_->run(*weights.indexer, read,
                  ropes_.rotation(config_.layer_ropes[static_cast<size_t>(index)], inputs, batch,
                                  choice.keys, std::nullopt),
                  choice);
  }
  return choice.chosen;
}

void Forward::append(const AttentionInputs& inputs, const Batch& batch, const PagedKv& kv) {
  backend_.rope_append(ropes_.rotation(-1, inputs, batch, kv, std::nullopt));
}

// The config says which norms exist, not the weights that were found.
InputNorm Forward::attn_input(const LayerWeights& weights, int64_t rows) const {
  FP8KV_ASSERT(weights.attn_norm.has_value() == norms_input(weights.norm_place));
  return {weights.attn_norm, view_of(normed_, rows, config_.attention_in_dim())};
}

InputNorm Forward::ffn_input(const LayerWeights& weights, int64_t rows) const {
  FP8KV_ASSERT(weights.ffn_norm.has_value() == norms_input(weights.ffn_norm_place));
  return {weights.ffn_norm, view_of(normed_, rows, config_.dim)};
}

// Rows x as products take them, normalised and times `multiplier`; x itself if there is no norm.
ConstTensorView Forward::entered(const ConstTensorView& x, const InputNorm& in, double multiplier) {
  FP8KV_ASSERT(in.norm || multiplier == 1.0);
  if (!in.norm) return x;
  backend_.norm(x, *in.norm, in.scratch);
  multiply(in.scratch, multiplier);
  return in.scratch;
}

void Forward::multiply(const TensorView& x, double multiplier) {
  if (multiplier != 1.0) backend_.scale(x, static_cast<float>(multiplier), 0.0f);
}

void Forward::attend(int64_t index, const AttentionInputs& inputs, const Batch& batch,
                     const PagedKv& kv, const TensorView& out) {
  const double scale = config_.block.attention_scale;
  const auto head_dim = static_cast<float>(config_.layer(index).k_head_dim);
  AttentionOptions options{.scale = scale != 0.0 ? static_cast<float>(scale)
                                    : config_.block.attention_scale_by_size
                                        ? 1.0f / head_dim
                                        : 1.0f / std::sqrt(head_dim),
                           .window = config_.window(index),
                           .chunk = config_.chunk(index),
                           .cap = static_cast<float>(config_.block.score_cap)};
  if (config_.block.attention_scale_by_layer) options.scale /= static_cast<float>(index + 1);
  if (score_bias_) options.bias = score_bias_->view();
  if (config_.has_sinks(index)) options.sinks = inputs.sinks.value();
  options.distances = inputs.distances;
  options.rounded_to = config_.dtype;
  options.pool = config_.layer(index).pool;
  options.chosen = inputs.chosen;
  if (inputs.chosen) {
    options.chosen_block = config_.indexer->block;
    options.chosen_pooled = config_.indexer->pooled;
  }
  if (differential_) return differential_->attend(inputs, kv, batch, options, out);
  backend_.attention(inputs.q, kv, batch, options, out);
  if (!shared_row_) return;
  const int32_t rope = config_.layer_ropes[static_cast<size_t>(index)];
  shared_row_->turn_back(index, out, ropes_.rotation(rope, inputs, batch, kv, std::nullopt));
}

void Forward::head(const HeadWeights& weights, const TensorView& x, const ConstTensorView& rows,
                   const TensorView& logits) {
  const TensorView chosen = view_of(normed_, rows.shape[0], config_.dim);
  if (streams_) {
    streams_->merge(weights.streams, x, rows, chosen);
  } else if (hyper_) {
    hyper_->merge(weights.hyper, x, rows, chosen);
  } else if (attn_res_) {
    attn_res_->merge(weights.attn_res.value(), x, rows, chosen);
  } else if (shortcut_) {
    shortcut_->merge(x, rows, chosen);
  } else if (shared_block_) {
    shared_block_->merge(x, rows, chosen);
  } else {
    backend_.embed(x, rows, chosen);
  }
  const BlockConfig& block = config_.block;
  if (norms_end(block.norm_place)) backend_.norm(chosen, weights.norm.value(), chosen);
  ConstTensorView last = chosen;
  if (weights.down) {
    const TensorView down = down_.first(rows.shape[0]);
    backend_.linear(chosen, std::array{project_to(*weights.down, down)});
    last = down;
  }
  backend_.linear(last, std::array{project_to(weights.lm_head, logits)});
  if (block.logit_multiplier != 1.0 || block.logit_cap != 0.0) {
    backend_.scale(logits, static_cast<float>(block.logit_multiplier),
                   static_cast<float>(block.logit_cap));
  }
}

}  // namespace fp8kv
