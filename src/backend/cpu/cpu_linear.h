// Projections: rows of activations times weights that lie as the checkpoint has them.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_kernels.h"
#include "backend/cpu/cpu_memory.h"
#include "base/thread_pool.h"

namespace fp8kv {

// Memory that `linear` keeps between calls.
struct LinearScratch {
  Scratch rows;                  // prepared activations
  std::vector<Scratch> threads;  // panels and sums of each thread
};

// Up to this many rows are computed by dot products along the weights, more rows in tiles; the
// second bound is for steps whose size is given (see Backend::compute_as). At 16 rows both ways are
// as fast. At 64 rows tiles are faster by up to a third, which is given up so that every batch that
// decodes is computed in one way.
inline constexpr int64_t kMostDotRows = 16;
inline constexpr int64_t kMostNamedDotRows = 64;

// See Backend::linear. A row's result has the same bits whatever other rows there are, among calls
// that are computed in the same way.
void cpu_linear(const CpuKernels& kernels, ThreadPool& pool, LinearScratch& scratch,
                const ConstTensorView& x, std::span<const Projection> projections,
                int64_t computed_as = 0);

}  // namespace fp8kv
