// The memory that a forward pass works in, and its size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"

namespace fp8kv {

class ForwardMemory {
 public:
  // For steps of up to `max_rows` rows. `backend` outlives this.
  ForwardMemory(Backend& backend, DType activation, int64_t max_rows)
      : backend_(backend), activation_(activation), max_rows_(max_rows) {}

  // [max_rows, width] of activations.
  Tensor rows(int64_t width) { return rows(activation_, width); }
  Tensor rows(DType dtype, int64_t width) { return make(dtype, Shape{max_rows_, width}); }
  Tensor make(DType dtype, const Shape& shape);
  // With the host's numbers in it.
  Tensor make(const ConstTensorView& host);

  Backend& backend() const { return backend_; }
  DType activation() const { return activation_; }
  int64_t max_rows() const { return max_rows_; }
  uint64_t bytes() const { return bytes_; }  // of all that was made

 private:
  Backend& backend_;
  DType activation_;
  int64_t max_rows_;
  uint64_t bytes_ = 0;
};

}  // namespace fp8kv
