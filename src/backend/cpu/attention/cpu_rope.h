// Everything between the projections and attention: rotate, round, observe, quantise, store.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/memory/cpu_context.h"

namespace fp8kv {

// See Backend::rope_append. Q, K and V are left rounded in place.
void cpu_rope_append(const CpuContext& cpu, const RopeAppend& args);

}  // namespace fp8kv
