#include "model/parts/forward_memory.h"

namespace fp8kv {

Tensor ForwardMemory::make(DType dtype, const Shape& shape) {
  Tensor tensor = backend_.allocate(dtype, shape);
  bytes_ += tensor.view().bytes();
  return tensor;
}

Tensor ForwardMemory::make(const ConstTensorView& host) {
  Tensor tensor = make(host.dtype, host.shape);
  backend_.copy_in(tensor.view(), host);
  return tensor;
}

}  // namespace fp8kv
