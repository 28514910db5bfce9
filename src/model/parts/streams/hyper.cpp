#include "model/parts/streams/hyper.h"

#include <array>
#include <vector>

#include "core/numbers/host_view.h"
#include "model/parts/projections.h"
#include "model/parts/streams/stream_rows.h"

namespace fp8kv {
namespace {

TensorView first_columns(const Tensor& buffer, int64_t rows, int64_t width) {
  return {buffer.view().data, buffer.view().dtype, Shape{rows, width}};
}

}  // namespace

void repeat_streams(Backend& backend, const ConstTensorView& embedded, const TensorView& out) {
  const int64_t dim = embedded.shape[1], count = out.shape[1] / dim;
  const TensorView streams = reshaped(out, {out.shape[0], 1, out.shape[1]});
  const ConstTensorView row{embedded.data, embedded.dtype, Shape{embedded.shape[0], 1, dim}};
  for (int64_t stream = 0; stream < count; ++stream) {
    backend.copy_columns({row, 0}, {streams, stream * dim}, dim);
  }
}

HyperForward::HyperForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()),
      hyper_(*config.hyper),
      dim_(config.dim),
      norm_eps_(static_cast<float>(config.norm_eps)) {
  const int64_t count = hyper_.count;
  in_ = memory.rows(dim_);
  chosen_ = memory.rows(count * dim_);
  write_ = memory.rows(DType::f32, count);
  if (hyper_.rank > 0) {
    gated_.emplace(memory, config);
    return;
  }
  products_ = memory.rows(DType::f32, hyper_.width());
  if (hyper_.rounds > 0) mix_ = memory.rows(DType::f32, count * count);
  read_ = memory.rows(DType::f32, count);
  if (hyper_.mean_head) {
    const std::vector<float> shares(static_cast<size_t>(memory.max_rows() * count),
                                    1.0f / static_cast<float>(count));
    means_ = memory.make(host_view(shares, Shape{memory.max_rows(), count}));
  }
  if (hyper_.f32_product) wide_.emplace(memory, count * dim_);
}

void HyperForward::share(const HyperWeights& weights, const ConstTensorView& x,
                         const HyperShares& out) {
  const int64_t n = x.shape[0];
  const TensorView products = first_columns(products_, n, weights.base.shape.elements());
  backend_.linear(wide_ ? wide_->widened(x) : x, std::array{project_to(weights.product, products)});
  backend_.hyper_shares({x, products, weights.scale, weights.base, norm_eps_}, hyper_, out);
}

TensorView HyperForward::read(const HyperWeights& weights, const ConstTensorView& x) {
  const int64_t n = x.shape[0];
  const TensorView in = in_.first(n);
  if (gated_) {
    gated_->read(weights, x, in);
    gated_->share(weights, write_.first(n));
    return in;
  }
  HyperShares shares{.read = read_.first(n), .write = write_.first(n)};
  if (hyper_.rounds > 0) shares.mix = mix_.first(n);
  share(weights, x, shares);
  backend_.mix_streams(by_stream(x, dim_), read_.first(n), {.onto = false}, by_stream(in, dim_));
  return in;
}

void HyperForward::write(const ConstTensorView& made, const TensorView& x) {
  if (hyper_.rounds > 0) {
    const TensorView streams = by_stream(x, dim_);
    backend_.mix_streams(streams, mix_.first(x.shape[0]), {.onto = false}, streams);
  }
  const StreamSum sum{.more = gated_ ? GatedStreams::kMoreWritten : 0.0f};
  backend_.mix_streams(by_stream(made, dim_), write_.first(x.shape[0]), sum, by_stream(x, dim_));
}

void HyperForward::merge(const std::optional<HyperWeights>& weights, const ConstTensorView& x,
                         const ConstTensorView& rows, const TensorView& out) {
  const int64_t n = rows.shape[0];
  const TensorView chosen = chosen_.first(n);
  backend_.embed(x, rows, chosen);
  if (gated_) return gated_->read(weights.value(), chosen, out);
  if (!hyper_.mean_head) share(weights.value(), chosen, {.read = read_.first(n)});
  const Tensor& shares = hyper_.mean_head ? means_ : read_;
  backend_.mix_streams(by_stream(chosen, dim_), shares.first(n), {.onto = false},
                       by_stream(out, dim_));
}

}  // namespace fp8kv
