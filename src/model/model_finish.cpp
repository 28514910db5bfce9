// The rest of a layer, after attention or a state: how the outputs of its blocks join the stream.
#include <array>
#include <cmath>

#include "base/error.h"
#include "model/model.h"
#include "model/parts/projections.h"

namespace fp8kv {

namespace {

template <typename T>
const T* pointer_to(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}

}  // namespace

Forward::BlockEnd Forward::attn_end(const LayerWeights& weights, double multiplier,
                                    double stream_factor) {
  const bool carried = weights.norm_place == NormPlace::carried;
  BlockEnd end{weights.norm_place, carried ? weights.attn_norm : weights.attn_post_norm,
               multiplier};
  end.stream_factor = stream_factor;
  end.gate = pointer_to(weights.attn_residual_gate);
  return end;
}

void Forward::finish(const LayerWeights& weights, const MixedRows& mixed, const TensorView& x,
                     const LayerStep& step) {
  if (streams_) {
    const TensorView made = streams_->active(x);
    finish_stream(weights, mixed, made, step);
    streams_->correct(*weights.streams, made, x);
    const TensorView active = streams_->for_input(*weights.streams, x);
    return streams_->add_to_others(
        layer_input_term(weights.input.value(), step.input.value(), active), x);
  }
  if (hyper_) return finish_hyper(weights, mixed, x, step);
  if (attn_res_) return finish_attn_res(weights, mixed, x, step);
  if (shortcut_) return finish_shortcut(weights, mixed, x, step);
  if (shared_block_) return finish_block(weights, mixed, x, step);
  finish_stream(weights, mixed, x, step);
  if (weights.input) {
    backend_.add(x, layer_input_term(*weights.input, step.input.value(), x), 1.0f);
  }
  if (weights.scale != 1.0f) backend_.scale(x, weights.scale, 0.0f);
}

// The rest of a layer with hyper-connections. Other rows may have been read since `project`.
void Forward::finish_hyper(const LayerWeights& weights, const MixedRows& mixed,
                           const TensorView& rows, const LayerStep& step) {
  const TensorView x = hyper_->read(weights.attn_hyper.value(), rows);
  hyper_->write(made_output(weights, mixed, x), rows);
  const TensorView in = hyper_->read(weights.ffn_hyper.value(), rows);
  hyper_->write(
      weights.experts ? mix(weights, in, step.input) : product(weights.down, hidden(weights, in)),
      rows);
}

// The rest of a layer with attention residuals. Other rows may have been read since `project`.
void Forward::finish_attn_res(const LayerWeights& weights, const MixedRows& mixed,
                              const TensorView& rows, const LayerStep& step) {
  const AttnResWeights& before = weights.attn_res.value();
  const TensorView made = made_output(weights, mixed, attn_res_->read(before, rows));
  if (weights.starts_block) {
    attn_res_->begin(before.sources, made, rows);
  } else {
    attn_res_->write(made, rows);
  }
  const TensorView in = attn_res_->read(weights.ffn_res.value(), rows);
  attn_res_->write(
      weights.experts ? mix(weights, in, step.input) : product(weights.down, hidden(weights, in)),
      rows);
}

// The output of attention or of a state.   x: the rows that it read
TensorView Forward::made_output(const LayerWeights& weights, const MixedRows& mixed,
                                const ConstTensorView& x) {
  return mixed.read ? product(weights.state->out, *mixed.read)
                    : product(weights.o, heads_output(weights, mixed.attended.value(), x));
}

// The rest of a layer where the output of experts joins the stream one layer later.
void Forward::finish_shortcut(const LayerWeights& weights, const MixedRows& mixed,
                              const TensorView& rows, const LayerStep& step) {
  const TensorView x = shortcut_->stream(rows);
  add_attended(weights, mixed.attended.value(), x, step);
  if (weights.experts) shortcut_->keep(mix(weights, x), rows);
  add_output(weights.down, hidden(weights, x),
             {weights.ffn_norm_place, weights.ffn_post_norm, config_.block.down_multiplier}, x);
  if (weights.ends_shortcut) backend_.add(x, shortcut_->kept(rows), 1.0f);
  shortcut_->put(x, rows);
}

// The rest of a layer in a model with shared blocks: a state, which also reads the block's output.
void Forward::finish_block(const LayerWeights& weights, const MixedRows& mixed,
                           const TensorView& rows, const LayerStep& step) {
  std::optional<ConstTensorView> heads;
  if (mixed.attended) heads = heads_output(weights, *mixed.attended, rows);
  const TensorView input = shared_block_->state_input(weights, rows, heads);
  backend_.norm(input, weights.state_in_norm.value(), input);
  const TensorView read = state_->run(*weights.state, input, step.batch, step.state);
  const TensorView x = shared_block_->stream(rows);
  backend_.linear(read, std::array{project_onto(weights.state->out, x)});
  shared_block_->put(x, rows);
}

// The rest of a layer on one stream, without the layer's own input.
void Forward::finish_stream(const LayerWeights& weights, const MixedRows& mixed,
                            const TensorView& x, const LayerStep& step) {
  // Parallel blocks both read x as it entered the layer.
  std::optional<TensorView> made;
  if (config_.block.parallel) made = weights.experts ? mix(weights, x) : hidden(weights, x);
  if (mixed.attended) add_attended(weights, *mixed.attended, x, step);
  if (mixed.read) {
    const double multiplier = config_.recurrence->multipliers.out;
    add_output(weights.state->out, *mixed.read,
               attn_end(weights, multiplier, config_.block.stream_factors.state), x);
  }
  if (weights.experts && weights.experts->beside) return mix_beside_dense(weights, x);
  if (!weights.feeds_forward) return;
  const double multiplier =
      weights.experts ? config_.experts->multiplier : config_.block.down_multiplier;
  // A convolution has no bias, so it can come before the multiplier.
  const bool carried = weights.ffn_norm_place == NormPlace::carried;
  BlockEnd end{weights.ffn_norm_place, carried ? weights.ffn_norm : weights.ffn_post_norm,
               multiplier * weights.ffn_scale};
  end.stream_factor = config_.block.stream_factors.feed_forward;
  end.factors = pointer_to(weights.ffn_post_factors);
  end.gate = pointer_to(weights.ffn_residual_gate);
  if (weights.short_convs) {
    end.conv = {short_conv(weights.short_convs->ffn, step.state.short_ffn), step.batch};
  }
  if (weights.experts) {
    if (!made) made = mix(weights, x);
    join(*made, end, x);
  } else {
    if (!made) made = hidden(weights, x);
    add_output(weights.down, *made, end, x);
  }
}

// The rows that the product after attention reads: its heads, times their gate if there is one.
// x: the rows that attention read
ConstTensorView Forward::heads_output(const LayerWeights& weights, const ConstTensorView& attended,
                                      const ConstTensorView& x) {
  ConstTensorView flat{attended.data, attended.dtype,
                       Shape{x.shape[0], attended.shape.elements() / x.shape[0]}};
  if (latent_) flat = latent_->values(*weights.latent, attended);
  if (shared_row_) flat = shared_row_->output(weights.shared_row.value(), attended);
  if (weights.attended_norm) flat = normed_heads(*weights.attended_norm, flat);
  return weights.attn_gate ? gated(weights, flat, x) : flat;
}

// Norms every head of attention's output [n, heads * size].
ConstTensorView Forward::normed_heads(const Norm& norm, const ConstTensorView& attended) {
  const int64_t n = attended.shape[0], width = attended.shape[1];
  const int64_t size = norm.weight.shape[0];
  const TensorView out = view_of(attended_normed_, n, width);
  const Shape heads{n * width / size, size};
  backend_.norm({attended.data, attended.dtype, heads}, norm, reshaped(out, heads));
  return out;
}

// Adds attention's output to the stream.
void Forward::add_attended(const LayerWeights& weights, const ConstTensorView& attended,
                           const TensorView& x, const LayerStep& step) {
  std::optional<TensorView> around;
  if (weights.laurel) {
    around = laurel_->run(*weights.laurel, entered(x, attn_input(weights, x.shape[0]), 1.0));
  }
  BlockEnd end = attn_end(weights, config_.block.attention_out_multiplier,
                          config_.block.stream_factors.attention);
  if (weights.short_convs) {
    end.conv = {short_conv(weights.short_convs->attn, step.state.short_attn), step.batch};
  }
  add_output(weights.o, heads_output(weights, attended, x), end, x);
  if (!around) return;
  backend_.add(x, *around, 1.0f);
  backend_.scale(x, std::sqrt(0.5f), 0.0f);
}

// Returns what the layer's own input adds to the stream.
TensorView Forward::layer_input_term(const LayerInput& weights, const ConstTensorView& input,
                                     const ConstTensorView& x) {
  const TensorView gate = layer_gate_.first(x.shape[0]);
  const TensorView output = view_of(output_, x.shape[0], config_.dim);
  backend_.linear(x, std::array{project_to(weights.gate, gate)});
  backend_.activate(config_.block.activation, gate, input);
  backend_.linear(gate, std::array{project_to(weights.out, output)});
  backend_.norm(output, weights.post_norm.value(), output);
  return output;
}

ConstTensorView Forward::gated(const LayerWeights& weights, const ConstTensorView& attended,
                               const ConstTensorView& x) {
  const ConstTensorView rows =
      entered(x, attn_input(weights, x.shape[0]), config_.block.attention_in_multiplier);
  return attention_gate_->run(weights.attn_gate.value(), rows, attended);
}

// The output of a layer's experts. Beside attention it waits in memory of its own.
//   given: the experts of each row, in a layer with a table of them
TensorView Forward::mix(const LayerWeights& weights, const TensorView& x,
                        const std::optional<ConstTensorView>& given) {
  const int64_t n = x.shape[0];
  const ConstTensorView rows = entered(x, ffn_input(weights, n), 1.0);
  const TensorView output =
      config_.block.parallel ? mixed_.first(n) : view_of(output_, n, config_.dim);
  experts_->choose(*weights.experts, rows, given);
  experts_->run(*weights.experts, rows, output);
  return output;
}

// The feed-forward part of a layer with experts beside its dense part. Router, experts and dense
// part each read the stream through a norm of their own.
void Forward::mix_beside_dense(const LayerWeights& weights, const TensorView& x) {
  const LayerExperts& experts = *weights.experts;
  const int64_t n = x.shape[0];
  const TensorView output = view_of(output_, n, config_.dim), mixed = mixed_.first(n);
  const TensorView rows = view_of(normed_, n, config_.dim);
  backend_.linear(hidden(weights, x), std::array{project_to(weights.down, output)});
  backend_.norm(output, experts.beside->dense_post, output);
  backend_.norm(x, experts.router_norm.value(), rows);
  experts_->choose(experts, rows);
  backend_.norm(x, experts.beside->experts, rows);
  experts_->run(experts, rows, mixed);
  backend_.norm(mixed, experts.beside->experts_post, mixed);
  backend_.add(output, mixed, 1.0f);
  join(output, {weights.ffn_norm_place, weights.ffn_post_norm}, x);
}

// The feed-forward part up to its last product.   [n, hidden_dim]
TensorView Forward::hidden(const LayerWeights& weights, const TensorView& x) {
  return dense_->run(weights, x, ffn_input(weights, x.shape[0]));
}

// A block's output in memory of its own.   [n, dim]
TensorView Forward::product(const Linear& linear, const ConstTensorView& from) {
  const TensorView output = view_of(output_, from.shape[0], config_.dim);
  backend_.linear(from, std::array{project_to(linear, output)});
  return output;
}

// The residual connection: adds a block's output, which is `linear` of `from`, to the stream.
void Forward::add_output(const Linear& linear, const ConstTensorView& from, const BlockEnd& end,
                         const TensorView& x) {
  if (end.conv || !adds_plainly(end.place, config_.block, end.multiplier)) {
    return join(product(linear, from), end, x);
  }
  backend_.linear(from, std::array{project_onto(linear, x)});
  if (end.place == NormPlace::after_add) backend_.norm(x, end.norm.value(), x);
}

// The residual connection for a block's output in memory of its own.
void Forward::join(const TensorView& output, const BlockEnd& end, const TensorView& x) {
  if (end.conv) backend_.causal_conv(output, end.conv->conv, end.conv->batch);
  if (end.factors != nullptr) backend_.scale_columns(output, *end.factors);
  if (norms_output(end.place)) backend_.norm(output, end.norm.value(), output);
  if (end.gate != nullptr) {
    backend_.scale_columns(x, end.gate->stream);
    backend_.scale_columns(output, end.gate->output);
  }
  if (end.place == NormPlace::carried) {
    backend_.norm(x, end.norm.value(), x);
    multiply(x, end.stream_factor);
  }
  backend_.add(x, output, static_cast<float>(config_.block.residual_multiplier * end.multiplier));
  if (end.place == NormPlace::after_add) backend_.norm(x, end.norm.value(), x);
}

}  // namespace fp8kv
