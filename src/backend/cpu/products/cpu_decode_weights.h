// Quantised weights as numbers.
#pragma once

#include "backend/cpu/isa/common/cpu_kernels.h"
#include "base/machine/thread_pool.h"
#include "core/model/quantised_matrix.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// See Backend::decode_weights.
void cpu_decode_weights(const CpuKernels& kernels, ThreadPool& pool, const QuantisedMatrix& matrix,
                        const TensorView& to);

}  // namespace fp8kv
