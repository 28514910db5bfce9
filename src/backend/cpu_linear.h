// Projections: rows of activations times weights that lie as the checkpoint has them.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu_kernels.h"
#include "backend/cpu_memory.h"
#include "backend/thread_pool.h"

namespace fp8kv {

// Memory that `linear` keeps between calls.
struct LinearScratch {
  Scratch rows;                  // prepared activations
  std::vector<Scratch> threads;  // panels and sums of each thread
};

// Steps of up to this many rows are computed by dot products along the weights, larger ones in
// tiles. At 16 rows both are as fast, at 64 tiles are by up to a third: the price of one way for
// every batch that decodes.
inline constexpr int64_t kMostDotRows = 64;

// See Backend::linear. A row's result has the same bits whatever other rows there are, among calls
// computed as steps of up to kMostDotRows rows and among calls computed as more.
void cpu_linear(const CpuKernels& kernels, ThreadPool& pool, LinearScratch& scratch,
                const ConstTensorView& x, std::span<const Projection> projections,
                int64_t computed_as = 0);

}  // namespace fp8kv
