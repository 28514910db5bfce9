// Shapes, views and the one owner of tensor memory. Row-major only; no strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "core/numbers/dtype.h"

namespace fp8kv {

// Up to 8 dimensions, outermost first. Rank 0 is a scalar: one element.
class Shape {
 public:
  static constexpr size_t kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);  // REQUIRES dims >= 0 and rank <= kMaxRank
  explicit Shape(std::span<const int64_t> dims);

  size_t rank() const { return rank_; }
  int64_t operator[](size_t index) const { return dims_[index]; }
  int64_t elements() const;  // REQUIRES the product to fit int64; whoever reads a shape checks that
  std::string text() const;  // "[4096, 1024]"
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  size_t rank_ = 0;
};

struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * dtype_bytes(dtype); }
  // REQUIRES sizeof(T) to be the size of an element.
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

struct ConstTensorView {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  ConstTensorView() = default;
  ConstTensorView(const std::byte* data_in, DType dtype_in, Shape shape_in)
      : data(data_in), dtype(dtype_in), shape(shape_in) {}
  ConstTensorView(const TensorView& view)  // NOLINT(google-explicit-constructor)
      : data(view.data), dtype(view.dtype), shape(view.shape) {}

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * dtype_bytes(dtype); }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data);
  }
};

// Owns the memory behind a view, on a host or a device. Whoever made it supplies the deleter. A
// view must not outlive its owner.
class Tensor {
 public:
  Tensor() = default;
  Tensor(TensorView view, std::shared_ptr<const void> storage)
      : view_(view), storage_(std::move(storage)) {}
  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor&&) = default;

  const TensorView& view() const { return view_; }
  // A view of the first `rows` of dimension 0.
  TensorView first(int64_t rows) const;
  bool empty() const { return storage_ == nullptr; }

 private:
  TensorView view_;
  std::shared_ptr<const void> storage_;  // not shared in practice; type-erased deleter
};

// A view of the same memory with another shape. REQUIRES the same number of elements.
TensorView reshaped(const TensorView& view, const Shape& shape);

}  // namespace fp8kv
