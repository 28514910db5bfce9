// Feed-forward parts of several experts. Rows are sorted by expert, so that each expert's weights
// are read once for all of its rows.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/cpu/memory/cpu_context.h"
#include "backend/cpu/memory/cpu_memory.h"
#include "backend/cpu/products/cpu_coded_rows.h"

namespace fp8kv {

// Memory that the op keeps between calls.
struct ExpertScratch {
  Scratch weighed;               // rows of x times their weights, where these go in
  Scratch rows;                  // prepared rows of x
  Scratch hidden;                // results of gate and up
  Scratch prepared;              // results of gate and up, prepared for down
  std::vector<Scratch> threads;  // panels and sums of each thread
  std::vector<CodeScratch> codes;
};

// Rows, the experts that they are sent to, and where the sums of the experts' results go.
struct RoutedRows {
  const ConstTensorView& x;  // [n, dim]
  const Routed& routed;
  const TensorView& out;  // [n, dim]
};

// See Backend::experts. A row's result has the same bits whatever other rows there are, among calls
// computed in the same way. The step's size decides the way, not how many rows an expert got.
void cpu_experts(const CpuContext& cpu, ExpertScratch& scratch, const RoutedRows& rows,
                 const ExpertMatrices& matrices);

}  // namespace fp8kv
