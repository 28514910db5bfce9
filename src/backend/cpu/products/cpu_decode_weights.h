// Quantised weights as numbers.
#pragma once

#include "backend/cpu/memory/cpu_context.h"
#include "core/model/quantised_matrix.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// See Backend::decode_weights.
void cpu_decode_weights(const CpuContext& cpu, const QuantisedMatrix& matrix, const TensorView& to);

}  // namespace fp8kv
