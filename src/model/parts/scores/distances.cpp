#include "model/parts/scores/distances.h"

#include <algorithm>
#include <array>

#include "core/numbers/host_view.h"
#include "model/parts/projections.h"
#include "model/parts/rope.h"

namespace fp8kv {

DistanceForward::DistanceForward(ForwardMemory& memory, const ModelConfig& config,
                                 int64_t max_positions)
    : backend_(memory.backend()), config_(config) {
  int64_t heads = 0;
  for (int64_t i = 0; i < config.n_layers(); ++i) heads = std::max(heads, config.n_heads_of(i));
  states_ = memory.rows(heads * config.distances->dim);
  for (const RopeConfig& rope : config.ropes) {
    std::optional<Tensor>& growth = growth_.emplace_back();
    if (rope.q_growth == 0.0) continue;
    std::vector<float> table;
    for (int64_t i = 0; i < max_positions; ++i) {
      table.push_back(static_cast<float>(q_growth_at(rope, static_cast<double>(i))));
    }
    growth = memory.make(host_view(table, Shape{max_positions}));
  }
}

DistanceBias DistanceForward::run(int64_t index, const DistanceWeights& weights,
                                  const ConstTensorView& x) {
  const int64_t n = x.shape[0], heads = config_.n_heads_of(index), dim = config_.distances->dim;
  const TensorView& all = states_.view();
  const TensorView states{all.data, all.dtype, Shape{n, heads * dim}};
  backend_.linear(x, std::array{project_to(weights.states, states)});
  DistanceBias bias{reshaped(states, {n, heads, dim}), weights.bank};
  const int32_t rope = config_.layer_ropes[static_cast<size_t>(index)];
  if (rope >= 0 && growth_[static_cast<size_t>(rope)]) {
    bias.growth = growth_[static_cast<size_t>(rope)]->view();
  }
  return bias;
}

}  // namespace fp8kv
