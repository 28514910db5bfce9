#include "model/parts/streams/attn_res.h"

#include <array>

#include "model/parts/projections.h"
#include "model/parts/streams/stream_rows.h"

namespace fp8kv {
namespace {

// The first n rows of `width` elements.
TensorView first_rows_of(const Tensor& buffer, int64_t n, int64_t width) {
  return {buffer.view().data, buffer.view().dtype, Shape{n, width}};
}

}  // namespace

AttnResForward::AttnResForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()), dim_(config.dim) {
  const int64_t width = config.stream_dim(), count = width / dim_;
  in_ = memory.rows(dim_);
  stream_ = memory.rows(dim_);
  sources_ = memory.rows(width);
  normed_ = memory.rows(width);
  chosen_ = memory.rows(width);
  products_ = memory.rows(DType::f32, count);
  shares_ = memory.rows(DType::f32, count);
  numbers_ = memory.rows(DType::i32, count);
}

void AttnResForward::sum(const AttnResWeights& weights, const ConstTensorView& x,
                         const TensorView& out) {
  const int64_t n = x.shape[0], count = weights.sources, width = count * dim_;
  if (count == 1) return copy_stream(backend_, x, 0, out);
  const TensorView sources = first_rows_of(sources_, n, width);
  const TensorView normed = first_rows_of(normed_, n * count, dim_);
  const TensorView products = first_rows_of(products_, n, count),
                   shares = first_rows_of(shares_, n, count);
  backend_.copy_columns({as_one_head(x), 0}, {as_one_head(sources), 0}, width);
  backend_.norm(reshaped(sources, {n * count, dim_}), weights.norm, normed);
  backend_.linear(normed,
                  std::array{project_to(weights.product, reshaped(products, {n * count, 1}))});
  // A softmax over all sources: each counts.
  const Routing all{.per_token = count};
  backend_.route(products, all, {}, {first_rows_of(numbers_, n, count), shares, {}});
  backend_.mix_streams(by_stream(sources, dim_), shares, {.onto = false}, by_stream(out, dim_));
}

TensorView AttnResForward::read(const AttnResWeights& weights, const ConstTensorView& x) {
  const TensorView in = in_.first(x.shape[0]);
  sum(weights, x, in);
  return in;
}

void AttnResForward::write(const ConstTensorView& made, const TensorView& x) {
  const TensorView stream = stream_.first(x.shape[0]);
  copy_stream(backend_, x, 0, stream);
  backend_.add(stream, made, 1.0f);
  put_stream(backend_, stream, 0, x);
}

void AttnResForward::begin(int64_t sources, const ConstTensorView& made, const TensorView& x) {
  const TensorView stream = stream_.first(x.shape[0]);
  copy_stream(backend_, x, 0, stream);
  put_stream(backend_, stream, sources, x);
  put_stream(backend_, made, 0, x);
}

void AttnResForward::merge(const AttnResWeights& weights, const ConstTensorView& x,
                           const ConstTensorView& rows, const TensorView& out) {
  const TensorView chosen = chosen_.first(rows.shape[0]);
  backend_.embed(x, rows, chosen);
  sum(weights, chosen, out);
}

}  // namespace fp8kv
