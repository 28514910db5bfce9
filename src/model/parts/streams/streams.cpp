#include "model/parts/streams/streams.h"

#include <array>
#include <vector>

#include "core/numbers/host_view.h"
#include "model/parts/projections.h"
#include "model/parts/streams/stream_rows.h"

namespace fp8kv {
void spread_streams(Backend& backend, const ConstTensorView& embedded,
                    std::span<const Tensor> weights, const TensorView& scratch,
                    const TensorView& out) {
  put_stream(backend, embedded, 0, out);
  for (size_t i = 0; i < weights.size(); ++i) {
    backend.linear(embedded, std::array{Projection{weights[i].view(), std::nullopt, scratch}});
    backend.match_rms(scratch, embedded);
    put_stream(backend, scratch, static_cast<int64_t>(i) + 1, out);
  }
}

StreamsForward::StreamsForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()), streams_(*config.streams), dim_(config.dim) {
  const int64_t count = streams_.count;
  active_ = memory.rows(dim_);
  other_ = memory.rows(dim_);
  product_ = memory.rows(dim_);
  chosen_ = memory.rows(count * dim_);
  routed_ = memory.rows(count);
  shares_ = memory.rows(DType::f32, count * count);
  std::vector<float> rows(static_cast<size_t>(memory.max_rows() * count), 1.0f);
  for (size_t i = 0; i < rows.size(); i += static_cast<size_t>(count)) rows[i] = 0.0f;
  but_first_ = memory.make(host_view(rows, Shape{memory.max_rows(), count}));
}

// Routes rows of one stream: the input of predictions and corrections.   [n, streams]
TensorView StreamsForward::route(const StreamWeights& weights, const ConstTensorView& active) {
  const int64_t n = active.shape[0];
  const TensorView normed = other_.first(n), routed = routed_.first(n);
  backend_.norm(active, weights.norm, normed);
  backend_.linear(normed, std::array{project_to(weights.router, routed)});
  backend_.scale(routed, 1.0f / static_cast<float>(dim_), 1.0f);  // and its tanh
  return routed;
}

void StreamsForward::predict(const StreamWeights& weights, const TensorView& x) {
  const TensorView routed = route(weights, active(x));
  const TensorView shares = shares_.first(x.shape[0]);
  backend_.linear(routed, std::array{project_to(weights.predict, shares)});
  backend_.mix_streams(by_stream(x, dim_), shares, {}, by_stream(x, dim_));
}

TensorView StreamsForward::active(const ConstTensorView& x) {
  const TensorView out = active_.first(x.shape[0]);
  copy_stream(backend_, x, streams_.active, out);
  return out;
}

void StreamsForward::correct(const StreamWeights& weights, const TensorView& made,
                             const TensorView& x) {
  const int64_t n = x.shape[0];
  const TensorView routed = route(weights, made);
  const TensorView memory = shares_.first(n);
  const TensorView shares{memory.data, memory.dtype, Shape{n, streams_.count}};
  backend_.linear(routed, std::array{project_to(weights.correct, shares)});
  // made - predicted: how far off the prediction was.
  const TensorView predicted = other_.first(n);
  copy_stream(backend_, x, streams_.active, predicted);
  backend_.add(made, predicted, -1.0f);
  backend_.mix_streams(by_stream(made, dim_), shares, {.more = 1.0f}, by_stream(x, dim_));
}

TensorView StreamsForward::for_input(const StreamWeights& weights, const ConstTensorView& x) {
  const TensorView out = active(x);
  if (streams_.scaled) backend_.scale_columns(out, {weights.scale.value()});
  return out;
}

void StreamsForward::add_to_others(const ConstTensorView& y, const TensorView& x) {
  backend_.mix_streams(by_stream(y, dim_), but_first_.first(x.shape[0]), {}, by_stream(x, dim_));
}

void StreamsForward::merge(std::span<const Linear> weights, const ConstTensorView& x,
                           const ConstTensorView& rows, const TensorView& out) {
  const int64_t n = rows.shape[0];
  const TensorView chosen = chosen_.first(n), first = active_.first(n);
  const TensorView stream = other_.first(n), product = product_.first(n);
  backend_.embed(x, rows, chosen);
  copy_stream(backend_, chosen, 0, first);
  copy_stream(backend_, chosen, 0, out);
  for (size_t i = 0; i < weights.size(); ++i) {
    copy_stream(backend_, chosen, static_cast<int64_t>(i) + 1, stream);
    backend_.linear(stream, std::array{project_to(weights[i], product)});
    backend_.match_rms(product, first);
    backend_.add(out, product, 1.0f);
  }
  backend_.scale(out, 1.0f / static_cast<float>(streams_.count), 0.0f);
}

}  // namespace fp8kv
