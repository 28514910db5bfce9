// A quantised matrix in a backend's memory.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "support/backends/wide_quantised_case.h"

namespace fp8kv::test {

// Copies the memory of a matrix's pointers to a backend.
class OnBackend {
 public:
  OnBackend(Backend& backend, test::QuantisedCase& quantised) : matrix_(quantised.on_host()) {
    matrix_.codes = put(backend, quantised.codes);
    matrix_.scales = put(backend, quantised.scales);
    matrix_.zeros = put(backend, quantised.zeros);
    matrix_.groups = static_cast<const int32_t*>(put(backend, quantised.groups));
    matrix_.overall = static_cast<const float*>(put(backend, quantised.overall));
  }

  const QuantisedMatrix& matrix() const { return matrix_; }

 private:
  const void* put(Backend& backend, const std::vector<uint32_t>& words) {
    if (words.empty()) return nullptr;
    const Shape shape{static_cast<int64_t>(words.size())};
    const ConstTensorView host(reinterpret_cast<const std::byte*>(words.data()), DType::u32, shape);
    memory_.push_back(backend.allocate(DType::u32, shape));
    backend.copy_in(memory_.back().view(), host);
    return memory_.back().view().data;
  }

  QuantisedMatrix matrix_;
  std::vector<Tensor> memory_;
};

}  // namespace fp8kv::test
