// Quantised weights as numbers.
#pragma once

#include "base/thread_pool.h"
#include "core/quantised_matrix.h"
#include "core/tensor.h"

namespace fp8kv {

// As Backend::decode_weights.
void cpu_decode_weights(ThreadPool& pool, const QuantisedMatrix& matrix, const TensorView& to);

}  // namespace fp8kv
