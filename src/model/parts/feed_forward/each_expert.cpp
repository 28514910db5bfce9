#include "model/parts/feed_forward/each_expert.h"

#include <vector>

#include "core/numbers/host_view.h"

namespace fp8kv {
namespace {

// The first `count` rows of `width` elements.
TensorView first_of(const Tensor& buffer, int64_t count, int64_t width) {
  return {buffer.view().data, buffer.view().dtype, Shape{count, width}};
}

}  // namespace

EachExpert::EachExpert(ForwardMemory& memory, int64_t per_token, int64_t width)
    : backend_(memory.backend()), per_token_(per_token), width_(width) {
  const int64_t most = memory.max_rows() * per_token;
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < most; ++i) rows.push_back(static_cast<int32_t>(i / per_token));
  rows_ = memory.make(host_view(rows, Shape{most}));
  const std::vector<float> ones(rows.size(), 1.0f);
  ones_ = memory.make(host_view(ones, Shape{most, 1}));
  in_ = memory.rows(per_token * width);
  made_ = memory.rows(per_token * width);
}

// Every choice of an expert becomes a row that goes to that expert alone.
void EachExpert::run(const LayerExperts& weights, const ConstTensorView& x, const Routed& routed,
                     const ExpertMatrices& matrices, const TensorView& out) {
  const int64_t n = x.shape[0], sent = n * per_token_;
  const TensorView in = first_of(in_, sent, width_), made = first_of(made_, sent, width_);
  backend_.embed(x, rows_.first(sent), in);
  const Routed alone{reshaped(routed.ids, {sent, 1}), ones_.first(sent), {}};
  backend_.experts(in, alone, matrices, made);
  backend_.scale_columns(made, weights.each_factors.value());
  backend_.norm(made, weights.each_norm.value(), made);
  backend_.mix_streams(reshaped(made, {n, per_token_, width_}), routed.weights, {.onto = false},
                       reshaped(out, {n, 1, width_}));
}

}  // namespace fp8kv
