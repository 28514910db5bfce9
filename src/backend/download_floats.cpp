#include "backend/download_floats.h"

#include <cstdint>
#include <span>

#include "core/numbers/half.h"

namespace fp8kv {

void download_floats(Backend& backend, const ConstTensorView& from, std::vector<float>& to) {
  const auto n = static_cast<size_t>(from.shape.elements());
  to.resize(n);
  if (from.dtype == DType::f32) {
    return backend.download(from, std::as_writable_bytes(std::span(to)));
  }
  std::vector<uint16_t> half(n);
  backend.download(from, std::as_writable_bytes(std::span(half)));
  for (size_t i = 0; i < n; ++i) {
    to[i] = from.dtype == DType::f16 ? f16_to_float(half[i]) : bf16_to_float(half[i]);
  }
}

}  // namespace fp8kv
