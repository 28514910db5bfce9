// A backend that counts its allocated bytes that are still in use, and their maximum.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "backend/forwarding_backend.h"

namespace fp8kv::test {

class CountingBackend final : public ForwardingBackend {
 public:
  explicit CountingBackend(std::unique_ptr<Backend> backend)
      : ForwardingBackend(*backend), owned_(std::move(backend)) {}

  Tensor allocate(DType dtype, const Shape& shape) override {
    const auto kept = std::make_shared<Tensor>(ForwardingBackend::allocate(dtype, shape));
    const TensorView view = kept->view();
    const uint64_t bytes = view.bytes();
    *in_use_ += bytes;
    peak_ = std::max(peak_, *in_use_);
    return {view, std::shared_ptr<const void>(kept.get(), [kept, bytes, in_use = in_use_](
                                                              const void*) { *in_use -= bytes; })};
  }
  uint64_t peak() const { return peak_; }

 private:
  std::unique_ptr<Backend> owned_;
  std::shared_ptr<uint64_t> in_use_ = std::make_shared<uint64_t>(0);
  uint64_t peak_ = 0;
};

}  // namespace fp8kv::test
