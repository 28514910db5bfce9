// Projections: rows of activations times weights in the checkpoint's own layout.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/memory/cpu_context.h"
#include "backend/cpu/memory/cpu_memory.h"
#include "backend/cpu/products/cpu_coded_rows.h"

namespace fp8kv {

// Memory that `linear` keeps between calls.
struct LinearScratch {
  Scratch rows;                  // prepared activations
  std::vector<Scratch> threads;  // panels and sums of each thread
  std::vector<CodeScratch> codes;
};

// See Backend::linear. A row's result has the same bits whatever other rows there are, among calls
// computed in the same way.
void cpu_linear(const CpuContext& cpu, LinearScratch& scratch, const ConstTensorView& x,
                std::span<const Projection> projections);

}  // namespace fp8kv
