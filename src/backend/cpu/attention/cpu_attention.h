// Causal attention over a paged cache, for prompts and single steps alike.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/memory/cpu_memory.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

// Memory that `attention` keeps between calls.
struct AttentionScratch {
  Scratch rotated;               // queries of a cache that rotates them
  Scratch partials;              // results of chunks of context that are still to be merged
  std::vector<Scratch> threads;  // working memory of each thread
};

// See Backend::attention. A row's result depends only on its query and the tokens that it sees. It
// has the same bits whatever else is in the batch, in a prompt and in a single step.
void cpu_attention(const CpuKernels& kernels, ThreadPool& pool, AttentionScratch& scratch,
                   const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                   const AttentionOptions& options, const TensorView& out);

}  // namespace fp8kv
