// Experts without matrices, which return their input.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/cpu/memory/cpu_context.h"

namespace fp8kv {

// Adds each row of x to its row of out, times the weight of each chosen expert from `first` on.
//   x, out [n, dim] f32
void cpu_add_identities(const CpuContext& cpu, const ConstTensorView& x, const Routed& routed,
                        int64_t first, const TensorView& out);

}  // namespace fp8kv
