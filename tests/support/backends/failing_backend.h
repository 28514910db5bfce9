// A backend that forwards to another until its n-th activation, where it throws: a run then ends in
// the middle of a layer.
#pragma once

#include <memory>
#include <utility>

#include "backend/forwarding_backend.h"
#include "base/error.h"

namespace fp8kv::test {

class FailingBackend final : public ForwardingBackend {
 public:
  FailingBackend(std::unique_ptr<Backend> backend, int activations)
      : ForwardingBackend(*backend), owned_(std::move(backend)), left_(activations) {}

  void activate(Activation activation, const TensorView& x,
                const std::optional<ConstTensorView>& up) override {
    if (--left_ == 0) throw Error("the device is lost", "", ErrorKind::device);
    ForwardingBackend::activate(activation, x, up);
  }

 private:
  std::unique_ptr<Backend> owned_;
  int left_;
};

}  // namespace fp8kv::test
