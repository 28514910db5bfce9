// A product of each head with a matrix of its own.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/products/cpu_linear.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

// See Backend::linear_heads. A row's result has the same bits whatever other rows there are, among
// calls computed in the same way.
void cpu_linear_heads(const CpuKernels& kernels, ThreadPool& pool, LinearScratch& scratch,
                      const ConstHeadColumns& x, const ConstTensorView& weights,
                      const HeadColumns& out, int64_t computed_as);

}  // namespace fp8kv
