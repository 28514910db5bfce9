// Causal attention over a paged cache, for prompts and single steps alike.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/cpu/memory/cpu_context.h"
#include "backend/cpu/memory/cpu_memory.h"

namespace fp8kv {

// Memory that `attention` keeps between calls.
struct AttentionScratch {
  Scratch rotated;               // queries of a cache that rotates them
  Scratch partials;              // results of chunks of context that are still to be merged
  Scratch bank;                  // of a bias of distances
  std::vector<Scratch> threads;  // working memory of each thread
};

// The queries of a step's rows, and where attention puts its output for them.
struct AttentionRows {
  const ConstTensorView& q;  // [n, n_heads, head_dim]
  const Batch& batch;
  const TensorView& out;  // [n, n_heads, v_head_dim]
};

// See Backend::attention. A row's result depends only on its query and the tokens that it sees. It
// has the same bits whatever else is in the batch, in a prompt and in a single step.
void cpu_attention(const CpuContext& cpu, AttentionScratch& scratch, const AttentionRows& rows,
                   const PagedKv& kv, const AttentionOptions& options);

}  // namespace fp8kv
