// The two ops of layers that keep a state: a convolution along tokens, and a recurrence.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/memory/cpu_context.h"
#include "backend/cpu/memory/cpu_memory.h"

namespace fp8kv {

struct RecurrenceScratch {
  Scratch weights;  // weights of the convolution, as floats
  Scratch rows;     // values that all columns of a state share
  Scratch states;   // for sequences whose state is not kept
};

// See Backend::causal_conv.
void cpu_causal_conv(const CpuContext& cpu, RecurrenceScratch& scratch, const TensorView& x,
                     const CausalConv& conv, const Batch& batch);

// See Backend::recur. Columns of a state are independent. So each block of columns stays in the
// nearest cache and takes all rows of its sequence in turn.
void cpu_recur(const CpuContext& cpu, RecurrenceScratch& scratch, const Recurrence& args,
               const Batch& batch, const TensorView& out);

}  // namespace fp8kv
