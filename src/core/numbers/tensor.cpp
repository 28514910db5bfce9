#include "core/numbers/tensor.h"

#include <algorithm>

#include "base/error.h"

namespace fp8kv {

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) : rank_(dims.size()) {
  FP8KV_ASSERT(dims.size() <= kMaxRank);
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (size_t i = 0; i < rank_; ++i) product *= dims_[i];
  return product;
}

std::string Shape::text() const {
  std::string out = "[";
  for (size_t i = 0; i < rank_; ++i) out += cat(i == 0 ? "" : ", ", dims_[i]);
  return out + "]";
}

TensorView Tensor::first(int64_t rows) const {
  FP8KV_ASSERT(view_.shape.rank() >= 1 && rows <= view_.shape[0]);
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (size_t i = 0; i < view_.shape.rank(); ++i) dims[i] = view_.shape[i];
  dims[0] = rows;
  return {view_.data, view_.dtype, Shape(std::span(dims.data(), view_.shape.rank()))};
}

TensorView reshaped(const TensorView& view, const Shape& shape) {
  FP8KV_ASSERT(view.shape.elements() == shape.elements());
  return {view.data, view.dtype, shape};
}

}  // namespace fp8kv
