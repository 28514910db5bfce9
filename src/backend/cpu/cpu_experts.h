// Feed-forward parts of several experts: rows are sorted by the experts that they are sent to, and
// each expert's weights are read once for all of its rows.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_coded_rows.h"
#include "backend/cpu/cpu_memory.h"
#include "backend/cpu/isa/cpu_kernels.h"
#include "base/thread_pool.h"

namespace fp8kv {

// Memory that the op keeps between calls.
struct ExpertScratch {
  Scratch weighed;               // rows of x times their weights, where these go in
  Scratch rows;                  // prepared rows of x
  Scratch hidden;                // what gate and up make of them
  Scratch prepared;              // the same, prepared for down
  std::vector<Scratch> threads;  // panels and sums of each thread
  std::vector<CodeScratch> codes;
};

// See Backend::experts. A row's result has the same bits whatever other rows there are, among calls
// that are computed in the same way, which the step's size decides: not how many rows an expert
// got.
void cpu_experts(const CpuKernels& kernels, ThreadPool& pool, ExpertScratch& scratch,
                 const ConstTensorView& x, const Routed& routed, const ExpertMatrices& matrices,
                 const TensorView& out, int64_t computed_as);

}  // namespace fp8kv
