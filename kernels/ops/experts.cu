// Feed-forward parts of several experts. The device sorts rows by expert; then a block computes a
// tile of rows of one expert. A result is one sum in a fixed order for any tile, so a row has the
// same bits whatever is beside it.
#include "core/numbers/half.h"
#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/launch_experts.h"
#include "kernels/launch_rows.h"
#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kTile = 64;          // rows and columns of a block
constexpr int kDepth = 16;         // depth of a slice in shared memory
constexpr int kSide = 4;           // rows and columns of a thread
constexpr int kPitch = kTile + 4;  // off a multiple of the banks
constexpr size_t kSliceBytes = kDepth * kPitch * sizeof(float);

__device__ inline int bits_of(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
  return static_cast<int>(x * 0x0101010101010101u >> 56);
}

// Counts the rows sent to each expert. One warp per expert.
__global__ void expert_count_kernel(ExpertArguments args) {
  after_previous();
  const int expert = static_cast<int>(block_index().x) * kWarps + warp_index();
  if (expert >= args.experts) return;
  int count = 0;
  for (int64_t i = 0; i < args.sent; i += kWarp) {
    const int64_t at = i + lane_index();
    count += bits_of(warp_ballot(at < args.sent && args.ids[at] == expert));
  }
  if (lane_index() == 0) args.scratch.counts[expert] = count;
}

// Sorts sent rows by expert, then by row, and makes the tiles that cover them. One warp per expert.
__global__ void expert_sort_kernel(ExpertArguments args) {
  after_previous();
  const int expert = static_cast<int>(block_index().x) * kWarps + warp_index();
  if (expert >= args.experts) return;
  const ExpertScratch& scratch = args.scratch;
  int before = 0, tile = 0;  // rows and tiles of the experts before this one
  for (int i = lane_index(); i < expert; i += kWarp) {
    before += scratch.counts[i];
    tile += (scratch.counts[i] + kTile - 1) / kTile;
  }
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    before += warp_xor(before, mask);
    tile += warp_xor(tile, mask);
  }
  const int end = before + scratch.counts[expert];
  for (int first = before + lane_index() * kTile, at = tile + lane_index(); first < end;
       first += kWarp * kTile, at += kWarp) {
    scratch.tiles[at] = {expert, first, end};
  }
  if (expert == args.experts - 1) {
    const int used = tile + (scratch.counts[expert] + kTile - 1) / kTile;
    for (int at = used + lane_index(); at < args.tiles; at += kWarp) scratch.tiles[at] = {-1, 0, 0};
  }
  for (int64_t i = 0; i < args.sent; i += kWarp) {
    const int64_t at = i + lane_index();
    const bool mine = at < args.sent && args.ids[at] == expert;
    const uint64_t all = warp_ballot(mine);
    if (mine) {
      const int place = before + bits_of(all & ((uint64_t{1} << lane_index()) - 1));
      scratch.places[at] = place;
      scratch.rows[place] = static_cast<int>(at / args.per_token);
      scratch.weights[place] = args.weigh_input ? args.weights[at] : 1.0f;
    }
    before += bits_of(all);
  }
}

// Loads rows `index(i)` of from [.., depth], i < kTile, into slice [kDepth][kPitch], transposed.
// Zero for negative indices and past the depth.
template <typename T, typename Index>
__device__ inline void load_slice(const T* from, int64_t first, int64_t depth, float* slice,
                                  const Index& index) {
  for (int i = thread_index(); i < kTile * kDepth; i += kThreads) {
    const int64_t row = index(i / kDepth);
    const int64_t at = first + i % kDepth;
    slice[i % kDepth * kPitch + i / kDepth] =
        row >= 0 && at < depth ? from[row * depth + at].value() : 0.0f;
  }
}

__device__ inline void multiply(const float* xs, const float* weights, int row, int col,
                                float (&sums)[kSide][kSide]) {
  for (int d = 0; d < kDepth; ++d) {
    for (int i = 0; i < kSide; ++i) {
      for (int j = 0; j < kSide; ++j) {
        sums[i][j] = fused(xs[d * kPitch + row + i], weights[d * kPitch + col + j], sums[i][j]);
      }
    }
  }
}

template <typename T>
__device__ inline const T* matrix(const ExpertArguments& args, int which, int expert) {
  return reinterpret_cast<const T*>(
      static_cast<uintptr_t>(args.addresses[int64_t{which} * args.experts + expert]));
}

// hidden = make(expert, column, gate, up), with gate and up as products of the row times its
// weight. Without a gate, gate is 0.
template <typename T, bool kGated, typename Make>
__device__ inline void expert_hidden(const ExpertArguments& args, const Make& make) {
  const ExpertTile tile = args.scratch.tiles[block_index().x];
  if (tile.expert < 0) return;
  Shared shared;
  float* xs = shared.take<float>(kDepth * kPitch);
  float* gates = shared.take<float>(kDepth * kPitch);
  float* ups = kGated ? shared.take<float>(kDepth * kPitch) : gates;
  const int64_t first_col = static_cast<int64_t>(block_index().y) * kTile;
  const int row = thread_index() / 16 * kSide, col = thread_index() % 16 * kSide;
  const auto row_at = [&](int i) -> int64_t {
    return tile.first + i < tile.end ? args.scratch.rows[tile.first + i] : -1;
  };
  const auto col_at = [&](int i) -> int64_t {
    return first_col + i < args.hidden_dim ? first_col + i : -1;
  };
  float gate[kSide][kSide] = {}, up[kSide][kSide] = {};
  for (int64_t first = 0; first < args.dim; first += kDepth) {
    load_slice(static_cast<const T*>(args.x), first, args.dim, xs, row_at);
    if constexpr (kGated) {
      load_slice(matrix<T>(args, 0, tile.expert), first, args.dim, gates, col_at);
    }
    load_slice(matrix<T>(args, 1, tile.expert), first, args.dim, ups, col_at);
    block_sync();
    if constexpr (kGated) multiply(xs, gates, row, col, gate);
    multiply(xs, ups, row, col, up);
    block_sync();
  }
  T* hidden = static_cast<T*>(args.scratch.hidden);
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      const int64_t at = tile.first + row + i, column = first_col + col + j;
      if (at >= tile.end || column >= args.hidden_dim) continue;
      const float weight = args.scratch.weights[at];
      hidden[at * args.hidden_dim + column] =
          T::of(make(tile.expert, column, gate[i][j] * weight, up[i][j] * weight));
    }
  }
}

// hidden = activation(gate) * up.   One block per tile (x) and kTile columns (y).
template <Activation A, typename T>
__global__ void expert_hidden_kernel(ExpertArguments args) {
  after_previous();
  expert_hidden<T, true>(
      args, [](int, int64_t, float gate, float up) { return activated<A>(gate) * up; });
}

// hidden = activation(up), for experts without a gate.   Same blocks.
template <Activation A, typename T>
__global__ void expert_plain_kernel(ExpertArguments args) {
  after_previous();
  expert_hidden<T, false>(args, [](int, int64_t, float, float up) { return activated<A>(up); });
}

// Finds the largest magnitude of each expert's part of `hidden`.   One block per tile.
template <typename T>
__global__ void expert_amax_kernel(ExpertArguments args) {
  after_previous();
  const ExpertTile tile = args.scratch.tiles[block_index().x];
  if (tile.expert < 0) return;
  const int64_t end = tile.end < tile.first + kTile ? tile.end : tile.first + kTile;
  const T* hidden = static_cast<const T*>(args.scratch.hidden);
  uint32_t most = 0;
  for (int64_t at = tile.first * args.hidden_dim + thread_index(); at < end * args.hidden_dim;
       at += kThreads) {
    const uint32_t bits = float_bits(hidden[at].value()) & 0x7FFFFFFFu;
    most = bits > most ? bits : most;
  }
  raise_to_largest(most, args.down_amax + tile.expert);
}

template <typename T>
__device__ inline float bias_of(const ExpertArguments& args, int which, int64_t at) {
  return args.biases[which] == nullptr ? 0.0f
                                       : static_cast<const T*>(args.biases[which])[at].value();
}

// hidden with biases and a clamped SwiGLU.   Same blocks.
template <typename T>
__global__ void expert_clamped_kernel(ExpertArguments args) {
  after_previous();
  expert_hidden<T, true>(args, [&](int expert, int64_t column, float gate, float up) {
    const int64_t at = int64_t{expert} * args.hidden_dim + column;
    return clamped(args.swiglu, gate + bias_of<T>(args, 0, at), up + bias_of<T>(args, 1, at));
  });
}

// made = down(hidden), with its bias.   One block per tile (x) and kTile columns (y).
template <typename T, bool kBiased>
__global__ void expert_down_kernel(ExpertArguments args) {
  after_previous();
  const ExpertTile tile = args.scratch.tiles[block_index().x];
  if (tile.expert < 0) return;
  Shared shared;
  float* xs = shared.take<float>(kDepth * kPitch);
  float* weights = shared.take<float>(kDepth * kPitch);
  const int64_t first_col = static_cast<int64_t>(block_index().y) * kTile;
  const int row = thread_index() / 16 * kSide, col = thread_index() % 16 * kSide;
  const auto row_at = [&](int i) -> int64_t {
    return tile.first + i < tile.end ? tile.first + i : -1;
  };
  const auto col_at = [&](int i) -> int64_t {
    return first_col + i < args.dim ? first_col + i : -1;
  };
  float sums[kSide][kSide] = {};
  for (int64_t first = 0; first < args.hidden_dim; first += kDepth) {
    load_slice(static_cast<const T*>(args.scratch.hidden), first, args.hidden_dim, xs, row_at);
    load_slice(matrix<T>(args, 2, tile.expert), first, args.hidden_dim, weights, col_at);
    block_sync();
    multiply(xs, weights, row, col, sums);
    block_sync();
  }
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      const int64_t at = tile.first + row + i, column = first_col + col + j;
      if (at >= tile.end || column >= args.dim) continue;
      float made = sums[i][j];
      if constexpr (kBiased) made += bias_of<T>(args, 2, int64_t{tile.expert} * args.dim + column);
      args.scratch.made[at * args.dim + column] = made;
    }
  }
}

// out = the sum of what a row's experts made, each times its weight, in the order of the ids. Ids
// from args.experts on are of identities, which make the row itself.   One thread per element.
template <typename T, bool kIdentities>
__global__ void expert_sum_kernel(ExpertArguments args) {
  after_previous();
  const int64_t at = static_cast<int64_t>(block_index().x) * kThreads + thread_index();
  if (at >= args.n * args.dim) return;
  const int64_t row = at / args.dim, column = at % args.dim;
  float sum = 0.0f;
  for (int j = 0; j < args.per_token; ++j) {
    const int64_t sent = row * args.per_token + j;
    if constexpr (kIdentities) {
      if (args.ids[sent] >= args.experts) {
        sum = fused(args.weights[sent], static_cast<const T*>(args.x)[at].value(), sum);
        continue;
      }
    }
    const float made = args.scratch.made[args.scratch.places[sent] * args.dim + column];
    sum = fused(args.weigh_input ? 1.0f : args.weights[sent], made, sum);
  }
  static_cast<T*>(args.out)[at] = T::of(sum);
}

// x = x * sigmoid(gate of its row).   One thread per element.
template <typename T>
__global__ void gate_rows_kernel(T* x, const float* gates, int64_t count, int64_t dim) {
  after_previous();
  const int64_t at = static_cast<int64_t>(block_index().x) * kThreads + thread_index();
  if (at >= count) return;
  x[at] = T::of(x[at].value() / (1.0f + exp_exact(-gates[at / dim])));
}

unsigned blocks_for(int64_t count, int64_t per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

}  // namespace

// Every expert has at most one incomplete tile.
int64_t expert_tiles(int64_t sent, int64_t experts) {
  return sent / kTile + (sent < experts ? sent : experts);
}

void experts(Stream stream, DType dtype, Activation activation, const ExpertArguments& args) {
  const Grid by_expert{blocks_for(args.experts, kWarps)};
  launch("experts", expert_count_kernel, by_expert, kThreads, 0, stream, args);
  launch("experts", expert_sort_kernel, by_expert, kThreads, 0, stream, args);
  const auto tiles = static_cast<unsigned>(args.tiles);
  with_compute_type(dtype, [&]<typename T>(T) {
    const Grid by_hidden{tiles, blocks_for(args.hidden_dim, kTile)};
    const bool biased = args.biases[2] != nullptr;
    if (args.clamped) {
      launch("experts", expert_clamped_kernel<T>, by_hidden, kThreads, 3 * kSliceBytes, stream,
             args);
    } else {
      with_activation(activation, [&]<Activation A>(ActivationTag<A>) {
        launch("experts", args.gated ? expert_hidden_kernel<A, T> : expert_plain_kernel<A, T>,
               by_hidden, kThreads, 3 * kSliceBytes, stream, args);
      });
    }
    if (args.down_amax != nullptr) {
      launch("experts", expert_amax_kernel<T>, {tiles}, kThreads, 0, stream, args);
    }
    launch("experts", biased ? expert_down_kernel<T, true> : expert_down_kernel<T, false>,
           {tiles, blocks_for(args.dim, kTile)}, kThreads, 2 * kSliceBytes, stream, args);
    launch("experts",
           args.has_identities ? expert_sum_kernel<T, true> : expert_sum_kernel<T, false>,
           {blocks_for(args.n * args.dim, kThreads)}, kThreads, 0, stream, args);
  });
}

void gate_rows(Stream stream, const Matrix& x, const float* gates) {
  with_compute_type(x.dtype, [&]<typename T>(T) {
    launch("gate_rows", gate_rows_kernel<T>, {blocks_for(x.rows * x.cols, kThreads)}, kThreads, 0,
           stream, static_cast<T*>(x.data), gates, x.rows * x.cols, x.cols);
  });
}

}  // namespace fp8kv::FP8KV_GPU
