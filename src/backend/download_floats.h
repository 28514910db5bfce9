// Downloads activations as floats, whatever their dtype.
#pragma once

#include <vector>

#include "backend/backend.h"

namespace fp8kv {

// Resizes `to` to the elements of `from`, which is f32, f16 or bf16.
void download_floats(Backend& backend, const ConstTensorView& from, std::vector<float>& to);

}  // namespace fp8kv
