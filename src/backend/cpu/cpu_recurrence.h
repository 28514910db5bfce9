// The two ops of layers that keep a state: a convolution along tokens, and a recurrence.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/memory/cpu_memory.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

struct RecurrenceScratch {
  Scratch weights;  // weights of the convolution, as floats
  Scratch rows;     // values that all columns of a state share
  Scratch states;   // for sequences whose state is not kept
};

// See Backend::causal_conv.
void cpu_causal_conv(const CpuKernels& kernels, ThreadPool& pool, RecurrenceScratch& scratch,
                     const TensorView& x, const CausalConv& conv, const Batch& batch);

// See Backend::recur. Columns of a state are independent. So each block of columns stays in the
// nearest cache and takes all rows of its sequence in turn.
void cpu_recur(const CpuKernels& kernels, ThreadPool& pool, RecurrenceScratch& scratch,
               const Recurrence& args, const Batch& batch, const TensorView& out);

}  // namespace fp8kv
