// What gated_linear and project_append share: blocks that normalise all rows into their own shared
// memory, after which each warp takes pairs of columns whose results belong together.
#pragma once

#include "kernels/blocks/column_sums.cuh"
#include "kernels/blocks/norm.cuh"
#include "kernels/blocks/products.cuh"

namespace fp8kv::FP8KV_GPU {

// As many as stay on a multiprocessor together; all work is dealt to these, so that rows are not
// normalised more often than that. Three leave a thread the registers to have 8 vectors (of one
// row; 4 of several) on their way, 48 KiB or more of a multiprocessor: twice what the latency of an
// H100's memory takes at its speed.
constexpr int kFusedBlocks = 3;
// What every device gives a block without asking; and three of them fit an A100's multiprocessor.
constexpr size_t kMaxFusedSharedBytes = 48 * 1024;

template <typename T>
size_t fused_shared_bytes(const Products& products) {
  return norm_shared_bytes(products.n) +
         static_cast<size_t>(products.n) * static_cast<size_t>(products.in_dim) * sizeof(T);
}

inline Grid fused_grid(int64_t pairs, int multiprocessors) {
  const int64_t needed = (pairs + kNormWarps - 1) / kNormWarps;
  const int64_t resident = int64_t{multiprocessors} * kFusedBlocks;
  return {static_cast<unsigned>(needed < resident ? needed : resident)};
}

// Pairs are dealt to warps like cards: the first to this warp, and the step from one to the next.
__device__ inline int first_pair() {
  return static_cast<int>(block_index().x) * kNormWarps + warp_index();
}
__device__ inline int pair_step() {
  return static_cast<int>(grid_size().x) * kNormWarps;
}

// Two columns whose results belong together.
template <typename T>
struct ColumnPair {
  const T* weights[2];

  // Asks for the first 2 or 4 KiB of each, a line of memory for every lane, to have the memory busy
  // while the rows are normalised.
  __device__ void prefetch_start(int64_t in_dim) const {
    constexpr int kLine = 128 / sizeof(T);
    const int64_t at = lane_index() % (kWarp / 2) * kLine;
    if (at < in_dim) prefetch((lane_index() < kWarp / 2 ? weights[0] : weights[1]) + at);
  }
};

// The normalised rows, in shared memory for the whole block: T [kRows, in_dim].
template <typename T, int kRows>
__device__ inline const T* normalised_rows(const NormedProducts& normed, Shared& shared) {
  constexpr int kCount = kVector<T>;
  const int64_t dim = normed.products.in_dim;
  const T* x = static_cast<const T*>(normed.x);
  float factors[kRows];
  norm_factors<kCount>(x, dim, normed.eps, shared, factors);
  T* rows = shared.take<T>(static_cast<size_t>(kRows * dim));
  for (int64_t i = kCount * thread_index(); i < dim; i += kCount * kNormThreads) {
    const auto weight = load_vec<kCount>(static_cast<const T*>(normed.weight) + i);
    for (int row = 0; row < kRows; ++row) {
      store_vec(rows + row * dim + i,
                normalised(load_vec<kCount>(x + row * dim + i), weight, factors[row]));
    }
  }
  block_sync();
  return rows;
}

// The products of the rows with a pair of columns: lane i < kRows gets those of row i, the others
// nothing of use.
template <typename T, int kRows>
__device__ inline void pair_products(const ColumnPair<T>& pair, const T* rows, int64_t in_dim,
                                     float (&results)[2]) {
  float sums[2][kRows];
  column_sums<T, kRows == 1 ? 4 : 2>(pair.weights, rows, in_dim, sums);
  for (int row = 0; row < kRows; ++row) {
    const float first = warp_sum(sums[0][row]), second = warp_sum(sums[1][row]);
    if (row == 0 || lane_index() == row) {
      results[0] = first;
      results[1] = second;
    }
  }
}

// Launches the kernel for as many rows as there are.   kernels: for 1, 2, 3 and 4
template <typename T, typename... Parameters, typename... Arguments>
void launch_fused(const char* name, void (*const (&kernels)[4])(Parameters...), int64_t pairs,
                  int multiprocessors, Stream stream, const Products& products,
                  const Arguments&... arguments) {
  launch(name, kernels[products.n - 1], fused_grid(pairs, multiprocessors), kNormThreads,
         fused_shared_bytes<T>(products), stream, arguments...);
}

}  // namespace fp8kv::FP8KV_GPU
