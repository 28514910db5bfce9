// Quantised weights as numbers.
#pragma once

#include "backend/cpu/isa/cpu_kernels.h"
#include "base/thread_pool.h"
#include "core/quantised_matrix.h"
#include "core/tensor.h"

namespace fp8kv {

// See Backend::decode_weights.
void cpu_decode_weights(const CpuKernels& kernels, ThreadPool& pool, const QuantisedMatrix& matrix,
                        const TensorView& to);

}  // namespace fp8kv
