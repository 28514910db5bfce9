#include "model/parts/layer_states.h"

#include "base/error.h"

namespace fp8kv {

LayerStates::LayerStates(Backend& backend, const ModelConfig& config, int64_t slots) {
  if (!config.keeps_states()) return;
  const auto take = [&](const Shape& shape) {
    Tensor tensor = backend.allocate(DType::f32, shape);
    bytes_ += tensor.view().bytes();
    return tensor;
  };
  with_context(cat("states of ", count_of(static_cast<uint64_t>(slots), "sequence")), [&] {
    for (int64_t i = 0; i < config.n_layers(); ++i) {
      if (config.short_convs) take_short_convs(config, i, slots, take);
      if (config.layer(i).pool > 0) take_pools(config, i, slots, take);
      if (config.indexer && config.indexer->weighted) take_index_pool(config, i, slots, take);
      if (config.keeps_state(i)) take_state(config, i, slots, take);
    }
  });
}

void LayerStates::take_short_convs(const ModelConfig& config, int64_t index, int64_t slots,
                                   const Take& take) {
  const LayerDescription& layer = config.layer(index);
  const auto tokens_before = [&](int64_t channels) {
    return take(Shape{slots, config.short_convs->width - 1, channels});
  };
  Memory& memory = layers_[index];
  memory.short_k = tokens_before(layer.n_kv_heads * layer.k_head_dim);
  memory.short_v = tokens_before(layer.n_kv_heads * layer.v_head_dim);
  memory.short_attn = tokens_before(config.dim);
  memory.short_ffn = tokens_before(config.dim);
}

void LayerStates::take_pools(const ModelConfig& config, int64_t index, int64_t slots,
                             const Take& take) {
  const LayerDescription& layer = config.layer(index);
  const int64_t parts = layer.pool_overlaps ? 2 : 1;
  layers_[index].pool = take(Shape{slots, parts * layer.pool, 2 * parts * layer.k_head_dim});
}

void LayerStates::take_index_pool(const ModelConfig& config, int64_t index, int64_t slots,
                                  const Take& take) {
  if (config.layer(index).index_bytes == 0) return;
  const IndexerConfig& indexer = *config.indexer;
  const int64_t parts = indexer.parts();
  layers_[index].index_pool =
      take(Shape{slots, parts * indexer.block, 2 * parts * indexer.head_dim});
}

void LayerStates::take_state(const ModelConfig& config, int64_t index, int64_t slots,
                             const Take& take) {
  const RecurrenceConfig& state = *config.recurrence;
  const auto tokens_before = [&](int64_t channels) {
    return take(Shape{slots, state.conv_width - 1, channels});
  };
  Memory& memory = layers_[index];
  if (state.conv_width > 0) memory.conv_v = tokens_before(state.v_width());
  if (!state.recurs()) return;
  if (!state.from_v && state.conv_width > 0) {
    memory.conv_q = tokens_before(state.k_width());
    memory.conv_k = tokens_before(state.k_width());
  }
  memory.recurrent = take(Shape{slots, state_elements(state.v_heads, state.k_dim, state.v_dim)});
  if (!config.ngrams || !config.ngrams->has(index)) return;
  const int64_t tokens = (config.ngrams->conv_width - 1) * config.ngrams->longest;
  memory.conv_ngrams = take(Shape{slots, tokens, config.stream_dim()});
}

LayerState LayerStates::layer(int64_t index) const {
  const auto found = layers_.find(index);
  if (found == layers_.end()) return {};
  const Memory& memory = found->second;
  return {memory.conv_q.view(),    memory.conv_k.view(),      memory.conv_v.view(),
          memory.recurrent.view(), memory.conv_ngrams.view(), memory.short_k.view(),
          memory.short_v.view(),   memory.short_attn.view(),  memory.short_ffn.view(),
          memory.pool.view(),      memory.index_pool.view()};
}

}  // namespace fp8kv
