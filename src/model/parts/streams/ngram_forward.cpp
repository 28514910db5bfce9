#include "model/parts/streams/ngram_forward.h"

#include <array>

#include "model/parts/projections.h"
#include "model/parts/streams/stream_rows.h"

namespace fp8kv {

NgramForward::NgramForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()), ngrams_(*config.ngrams), dim_(config.dim) {
  keys_ = memory.rows(config.stream_dim());
  queries_ = memory.rows(config.stream_dim());
  value_ = memory.rows(dim_);
  gates_ = memory.rows(DType::f32, config.hyper->count);
}

void NgramForward::run(const NgramWeights& weights, const ConstTensorView& rows,
                       const TensorView& x, const Batch& batch, const LayerState& state) {
  const int64_t n = x.shape[0];
  const TensorView keys = keys_.first(n), queries = queries_.first(n), value = value_.first(n);
  const TensorView gates = gates_.first(n);
  backend_.linear(rows,
                  std::array{project_to(weights.key, keys), project_to(weights.value, value)});
  norm_streams(backend_, keys, weights.key_norm, keys);
  norm_streams(backend_, x, weights.query_norm, queries);
  backend_.stream_gates(by_stream(keys, dim_), by_stream(queries, dim_), gates);
  const TensorView gated = keys;  // the keys have had their use
  backend_.mix_streams(by_stream(value, dim_), gates, {.onto = false}, by_stream(gated, dim_));
  backend_.add(x, gated, 1.0f);
  const TensorView mixed = queries;
  norm_streams(backend_, gated, weights.conv_norm, mixed);
  CausalConv conv{weights.conv.weight, weights.conv.bias, state.conv_ngrams};
  conv.dilation = ngrams_.longest;
  backend_.causal_conv(mixed, conv, batch);
  backend_.add(x, mixed, 1.0f);
}

}  // namespace fp8kv
