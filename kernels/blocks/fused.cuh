// Shared by the kernels `hidden` and `project_append`. Each block normalises all rows into its
// shared memory; then each warp computes pairs of columns whose results belong together.
#pragma once

#include "kernels/blocks/column_sums.cuh"
#include "kernels/blocks/norm.cuh"
#include "kernels/blocks/products.cuh"

namespace fp8kv::FP8KV_GPU {

// Blocks per multiprocessor, and the most that are launched: every block normalises all rows, so
// more blocks would repeat that work. With three, a thread has registers for 8 loads of 16 bytes in
// flight (4 with several rows). That is 48 KiB or more per multiprocessor, twice what an H100 needs
// to hide the latency of its memory.
constexpr int kFusedBlocks = 3;
// Every device gives a block this much without permission, and three such blocks fit a
// multiprocessor of an A100.
constexpr size_t kMaxFusedSharedBytes = 48 * 1024;

template <typename T>
size_t fused_shared_bytes(const Products& products) {
  return norm_shared_bytes(products.n) +
         static_cast<size_t>(products.n) * static_cast<size_t>(products.in_dim) * sizeof(T);
}

// How often the warps of a full device take a pair.
inline int64_t fused_rounds(int64_t pairs, int multiprocessors) {
  const int64_t resident = int64_t{multiprocessors} * kFusedBlocks * kNormWarps;
  return (pairs + resident - 1) / resident;
}

// The fewest blocks that need no more rounds. With a last round that is half full, an H200 takes
// 73.0 us for 14,336 pairs of columns of 4,096, and with full ones 69.2.
inline Grid fused_grid(int64_t pairs, int multiprocessors) {
  const int64_t blocks = (pairs + kNormWarps - 1) / kNormWarps;
  const int64_t rounds = fused_rounds(pairs, multiprocessors);
  return {static_cast<unsigned>((blocks + rounds - 1) / rounds)};
}

// Pairs of columns go to the warps of the grid in turn. These are this warp's first pair, and the
// step to its next one.
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

  // Prefetches the first 2 or 4 KiB of each column, one line per lane, so that the memory is busy
  // while the rows are normalised.
  __device__ void prefetch_start(int64_t in_dim) const {
    constexpr int kLine = 128 / sizeof(T);
    const int64_t at = lane_index() % (kWarp / 2) * kLine;
    if (at < in_dim) prefetch((lane_index() < kWarp / 2 ? weights[0] : weights[1]) + at);
  }
};

// Normalises the rows into shared memory of the whole block: T [kRows, in_dim].
template <typename T, int kRows>
__device__ inline const T* normalised_rows(const NormedProducts& normed, Shared& shared) {
  constexpr int kCount = kVector<T>;
  const int64_t dim = normed.products.in_dim;
  const T* x = static_cast<const T*>(normed.x);
  float factors[kRows];
  norm_factors<kCount>(x, dim, normed.norm.eps, shared, factors);
  T* rows = shared.take<T>(static_cast<size_t>(kRows * dim));
  for (int64_t i = kCount * thread_index(); i < dim; i += kCount * kNormThreads) {
    const auto weight = load_vec<kCount>(static_cast<const T*>(normed.norm.weight) + i);
    for (int row = 0; row < kRows; ++row) {
      store_vec(rows + row * dim + i, normalised(load_vec<kCount>(x + row * dim + i), weight,
                                                 normed.norm.weight_offset, factors[row]));
    }
  }
  block_sync();
  return rows;
}

// Computes the products of the rows with a pair of columns. Lane i < kRows gets those of row i;
// other lanes get meaningless values.
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

// Launches the kernel for the number of rows.   kernels: for 1, 2, 3 and 4 rows
template <typename T, typename... Parameters, typename... Arguments>
void launch_fused(const char* name, void (*const (&kernels)[4])(Parameters...), int64_t pairs,
                  int multiprocessors, Stream stream, const Products& products,
                  const Arguments&... arguments) {
  launch(name, kernels[products.n - 1], fused_grid(pairs, multiprocessors), kNormThreads,
         fused_shared_bytes<T>(products), stream, arguments...);
}

}  // namespace fp8kv::FP8KV_GPU
