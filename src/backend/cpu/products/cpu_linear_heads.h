// A product of each head with a matrix of its own.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/memory/cpu_context.h"
#include "backend/cpu/products/cpu_linear.h"

namespace fp8kv {

// See Backend::linear_heads. A row's result has the same bits whatever other rows there are, among
// calls computed in the same way.
void cpu_linear_heads(const CpuContext& cpu, LinearScratch& scratch, const ConstHeadColumns& x,
                      const ConstTensorView& weights, const HeadColumns& out);

}  // namespace fp8kv
