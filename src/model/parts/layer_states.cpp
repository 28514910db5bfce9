#include "model/parts/layer_states.h"

#include "base/error.h"

namespace fp8kv {

LayerStates::LayerStates(Backend& backend, const ModelConfig& config, int64_t slots) {
  if (!config.recurrence) return;
  const RecurrenceConfig& state = *config.recurrence;
  const auto take = [&](const Shape& shape) {
    Tensor tensor = backend.allocate(DType::f32, shape);
    bytes_ += tensor.view().bytes();
    return tensor;
  };
  const auto tokens_before = [&](int64_t channels) {
    return take(Shape{slots, state.conv_width - 1, channels});
  };
  const auto before_ngrams = [&] {
    const int64_t tokens = (config.ngrams->conv_width - 1) * config.ngrams->longest;
    return take(Shape{slots, tokens, config.stream_dim()});
  };
  with_context(cat("states of ", count_of(static_cast<uint64_t>(slots), "sequence")), [&] {
    for (int64_t i = 0; i < config.n_layers(); ++i) {
      if (!config.keeps_state(i)) continue;
      if (!state.recurs()) {
        layers_[i].conv_v = tokens_before(state.v_width());
        continue;
      }
      layers_[i] = {tokens_before(state.k_width()),
                    tokens_before(state.k_width()),
                    tokens_before(state.v_width()),
                    take(Shape{slots, state_elements(state.v_heads, state.k_dim, state.v_dim)}),
                    {}};
      if (config.ngrams && config.ngrams->has(i)) layers_[i].conv_ngrams = before_ngrams();
    }
  });
}

LayerState LayerStates::layer(int64_t index) const {
  const auto found = layers_.find(index);
  if (found == layers_.end()) return {};
  const Memory& memory = found->second;
  return {memory.conv_q.view(), memory.conv_k.view(), memory.conv_v.view(), memory.recurrent.view(),
          memory.conv_ngrams.view()};
}

}  // namespace fp8kv
