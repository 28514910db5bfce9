// The two ops of layers that keep a state: a convolution along tokens, and a recurrence.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/cpu_memory.h"
#include "backend/cpu/isa/cpu_kernels.h"
#include "base/thread_pool.h"

namespace fp8kv {

struct RecurrenceScratch {
  Scratch weights;  // of the convolution
  Scratch rows;     // what is the same for all columns of a state
  Scratch states;   // of sequences whose own is not kept
};

// Backend::causal_conv.
void cpu_causal_conv(const CpuKernels& kernels, ThreadPool& pool, RecurrenceScratch& scratch,
                     const TensorView& x, const CausalConv& conv, const Batch& batch);

// Backend::recur. Columns of a state never meet, so each block of them takes all rows of its
// sequence in turn while it stays in the nearest cache.
void cpu_recur(const CpuKernels& kernels, ThreadPool& pool, RecurrenceScratch& scratch,
               const Recurrence& args, const Batch& batch, const TensorView& out);

}  // namespace fp8kv
