#include "model/parts/state.h"

#include <array>
#include <vector>

#include "core/numbers/host_view.h"
#include "model/parts/projections.h"

namespace fp8kv {

StateForward::StateForward(ForwardMemory& memory, const ModelConfig& config,
                           const RopeTables& ropes)
    : backend_(memory.backend()), sizes_(*config.recurrence), ropes_(ropes) {
  k_ = memory.rows(sizes_.k_width());
  v_ = memory.rows(sizes_.v_width());
  gate_ = memory.rows(sizes_.v_width());
  if (!sizes_.recurs()) return;
  q_ = memory.rows(sizes_.k_width());
  read_ = memory.rows(sizes_.v_width());
  if (sizes_.fixed_decays) {
    const Shape shape{memory.max_rows(), sizes_.steps()};
    const std::vector<float> zeros(static_cast<size_t>(shape.elements()));
    step_ = memory.make(host_view(zeros, shape));
  } else {
    step_ = memory.rows(DType::f32, sizes_.steps());
  }
  if (sizes_.rank > 0) {
    if (!sizes_.from_v && !sizes_.full_gate) gate_down_ = memory.rows(sizes_.rank);
    step_down_ = memory.rows(sizes_.rank);
  }
  if (sizes_.from_v) return;
  strength_ = memory.rows(DType::f32, sizes_.v_heads);
}

void StateForward::multiply(const TensorView& x, double multiplier) {
  if (multiplier != 1.0) backend_.scale(x, static_cast<float>(multiplier), 0.0f);
}

TensorView StateForward::convolve(const StateWeights& weights, const ConstTensorView& x,
                                  const Batch& batch, const LayerState& state) {
  const int64_t n = x.shape[0];
  const TensorView k = k_.first(n), v = v_.first(n), gate = gate_.first(n);
  backend_.linear(x, std::array{project_to(weights.k, k), project_to(weights.v, v),
                                project_to(weights.gate, gate)});
  CausalConv conv{weights.conv_v.weight, weights.conv_v.bias, state.conv_v};
  conv.silu = false;
  conv.in_gate = k;
  conv.out_gate = gate;
  backend_.causal_conv(v, conv, batch);
  return v;
}

TensorView StateForward::scan(const StateWeights& weights, const ConstTensorView& x,
                              const Batch& batch, const LayerState& state) {
  const int64_t n = x.shape[0], width = sizes_.v_width();
  const TensorView q = q_.first(n), k = k_.first(n), v = v_.first(n), gate = gate_.first(n);
  const TensorView down = step_down_.first(n), step = step_.first(n), read = read_.first(n);
  backend_.linear(x, std::array{project_to(weights.v, v), project_to(weights.gate, gate)});
  backend_.causal_conv(v, {weights.conv_v.weight, weights.conv_v.bias, state.conv_v}, batch);
  backend_.linear(v, std::array{project_to(weights.step_down.value(), down),
                                project_to(weights.k, k), project_to(weights.q, q)});
  backend_.norm(down, weights.step_norm.value(), down);
  backend_.norm(k, weights.k_norm.value(), k);
  backend_.norm(q, weights.q_norm.value(), q);
  backend_.linear(down, std::array{project_to(weights.step, step)});
  Recurrence args;
  args.update = sizes_.update;
  args.q = reshaped(q, {n, sizes_.k_heads, sizes_.k_dim});
  args.k = reshaped(k, {n, sizes_.k_heads, sizes_.k_dim});
  args.v = reshaped(v, {n, 1, width});
  args.step = step;
  args.a_log = weights.decay;
  args.step_bias = weights.step_bias;
  args.skip = weights.skip;
  args.by_element = true;
  args.state = state.recurrent;
  backend_.recur(args, batch, reshaped(read, {n, 1, width}));
  backend_.activate(sizes_.gate, gate, read);
  return gate;
}

void StateForward::mix_tokens(const StateWeights& weights, int64_t n, const Batch& batch,
                              const LayerState& state) {
  const TensorView q = q_.first(n), k = k_.first(n), v = v_.first(n);
  if (!sizes_.activates) return;
  if (sizes_.conv_width == 0) {
    for (const TensorView& each : {q, k, v}) backend_.activate(Activation::silu, each, {});
    return;
  }
  backend_.causal_conv(q, {weights.conv_q.weight, weights.conv_q.bias, state.conv_q}, batch);
  backend_.causal_conv(k, {weights.conv_k.weight, weights.conv_k.bias, state.conv_k}, batch);
  backend_.causal_conv(v, {weights.conv_v.weight, weights.conv_v.bias, state.conv_v}, batch);
}

// The products of rows x, before the convolution.
void StateForward::project(const StateWeights& weights, const ConstTensorView& x) {
  const int64_t n = x.shape[0];
  const TensorView gate = gate_.first(n), step = step_.first(n);
  std::vector<Projection> projections = {project_to(weights.q, q_.first(n)),
                                         project_to(weights.k, k_.first(n)),
                                         project_to(weights.v, v_.first(n))};
  if (weights.gate_down) {
    projections.push_back(project_to(*weights.gate_down, gate_down_.first(n)));
  } else {
    projections.push_back(project_to(weights.gate, gate));
  }
  if (weights.step_down) {
    projections.push_back(project_to(*weights.step_down, step_down_.first(n)));
  } else if (!sizes_.fixed_decays) {
    projections.push_back(project_to(weights.step, step));
  }
  if (weights.strength) projections.push_back(project_to(*weights.strength, strength_.first(n)));
  backend_.linear(x, projections);
  if (weights.gate_down) {
    backend_.linear(gate_down_.first(n), std::array{project_to(weights.gate, gate)});
  }
  if (weights.step_down) {
    backend_.linear(step_down_.first(n), std::array{project_to(weights.step, step)});
  }
}

void StateForward::norm_heads(const StateWeights& weights, int64_t n) {
  const Shape by_head = {n * sizes_.k_heads, sizes_.k_dim};
  const TensorView q = reshaped(q_.first(n), by_head), k = reshaped(k_.first(n), by_head);
  backend_.norm(q, weights.q_norm.value(), q);
  backend_.norm(k, weights.k_norm.value(), k);
}

void StateForward::rotate(int64_t n, const Batch& batch) {
  const Shape by_head = {n, sizes_.k_heads, sizes_.k_dim};
  const TensorView q = reshaped(q_.first(n), by_head), k = reshaped(k_.first(n), by_head);
  PagedKv none;  // gives the size of a head alone
  none.head_dim = static_cast<int32_t>(sizes_.k_dim);
  const RopeAppend args = ropes_.rotation(sizes_.rope, {q, k, k}, batch, none, std::nullopt);
  backend_.rope_append(rotate_alone(q, args));
  backend_.rope_append(rotate_alone(k, args));
}

TensorView StateForward::run(const StateWeights& weights, const ConstTensorView& x,
                             const Batch& batch, const LayerState& state) {
  if (!sizes_.recurs()) return convolve(weights, x, batch, state);
  if (sizes_.from_v) return scan(weights, x, batch, state);
  const int64_t n = x.shape[0], heads = sizes_.v_heads, width = sizes_.v_width();
  const TensorView q = q_.first(n), k = k_.first(n);
  const TensorView v = v_.first(n), gate = gate_.first(n);
  const TensorView read = read_.first(n);
  const TensorView step = step_.first(n), strength = strength_.first(n);
  project(weights, x);
  if (sizes_.qk_norm) norm_heads(weights, n);
  const StateMultipliers& by = sizes_.multipliers;
  multiply(gate, by.gate);
  multiply(v, by.v);
  multiply(k, by.k);
  multiply(q, by.q);
  multiply(step, by.step);
  if (sizes_.rope >= 0) rotate(n, batch);
  mix_tokens(weights, n, batch, state);
  Recurrence args;
  args.update = sizes_.update;
  args.q = reshaped(q, {n, sizes_.k_heads, sizes_.k_dim});
  args.k = reshaped(k, {n, sizes_.k_heads, sizes_.k_dim});
  args.v = reshaped(v, {n, heads, sizes_.v_dim});
  args.step = step;
  if (weights.strength) args.strength = strength;
  args.most_strength = static_cast<float>(sizes_.most_strength);
  args.a_log = weights.decay;
  args.step_bias = weights.step_bias;
  args.least_step = static_cast<float>(sizes_.least_step);
  args.most_step = static_cast<float>(sizes_.most_step);
  args.least_log_decay = static_cast<float>(sizes_.least_log_decay);
  args.skip = weights.skip;
  args.unit = sizes_.update == StateUpdate::delta;
  args.state = state.recurrent;
  backend_.recur(args, batch, reshaped(read, {n, heads, sizes_.v_dim}));
  const Shape by_head = {n * heads, sizes_.v_dim};
  const Shape by_group = {n * sizes_.groups(), width / sizes_.groups()};
  const auto norm = [&](const TensorView& rows) {
    backend_.norm(rows, weights.norm.value(), rows);
  };
  if (sizes_.norm == StateNorm::heads) norm(reshaped(read, by_head));
  if (sizes_.norm == StateNorm::groups) norm(reshaped(read, by_group));
  if (sizes_.norm == StateNorm::whole) norm(read);
  backend_.activate(sizes_.gate, gate, read);
  if (sizes_.norm == StateNorm::groups_after_gate) norm(reshaped(gate, by_group));
  return gate;
}

}  // namespace fp8kv
