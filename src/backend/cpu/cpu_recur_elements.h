// A recurrence in which each element of a state decays at a rate of its own (Mamba-1).
#pragma once

#include "backend/cpu/cpu_recurrence.h"

namespace fp8kv {

// Does the work of cpu_recur. REQUIRES Recurrence::by_element.
void cpu_recur_elements(const CpuContext& cpu, RecurrenceScratch& scratch, const Recurrence& args,
                        const Batch& batch, const TensorView& out);

}  // namespace fp8kv
