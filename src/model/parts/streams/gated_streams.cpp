#include "model/parts/streams/gated_streams.h"

#include <array>
#include <vector>

#include "core/numbers/host_view.h"
#include "model/parts/projections.h"
#include "model/parts/streams/stream_rows.h"

namespace fp8kv {

GatedStreams::GatedStreams(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()), count_(config.hyper->count), dim_(config.dim) {
  normed_ = memory.rows(count_ * dim_);
  gates_ = memory.rows(count_ * dim_);
  down_ = memory.rows(config.hyper->rank);
  const std::vector<float> even(static_cast<size_t>(memory.max_rows() * count_),
                                1.0f / static_cast<float>(count_));
  even_ = memory.make(host_view(even, Shape{memory.max_rows(), count_}));
}

void GatedStreams::read(const HyperWeights& weights, const ConstTensorView& x,
                        const TensorView& out) {
  const int64_t n = x.shape[0];
  const TensorView normed = normed_.first(n), gates = gates_.first(n), down = down_.first(n);
  norm_streams(backend_, x, weights.norm.value(), normed);
  backend_.linear(normed, std::array{project_to(weights.down.value(), down)});
  backend_.scale(down, 1.0f / static_cast<float>(count_), 0.0f);
  backend_.activate(Activation::silu, down, std::nullopt);
  backend_.linear(down, std::array{project_to(weights.up.value(), gates)});
  backend_.activate(Activation::sigmoid, gates, normed);
  backend_.mix_streams(by_stream(gates, dim_), even_.first(n), {.onto = false},
                       by_stream(out, dim_));
}

void GatedStreams::share(const HyperWeights& weights, const TensorView& out) {
  backend_.linear(normed_.first(out.shape[0]), std::array{project_to(weights.product, out)});
  backend_.scale(out, 0.5f / static_cast<float>(count_), 1.0f);  // and its tanh
}

}  // namespace fp8kv
