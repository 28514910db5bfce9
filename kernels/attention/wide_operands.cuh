// The sizes of a block of attention_wide, and its operands from rows of 16-bit numbers in shared
// memory.
#pragma once

#include "kernels/attention/lane_queue.cuh"

namespace fp8kv::FP8KV_GPU {

// Elements of K's rows. For fewer, a tile of 32 queries has more overhead than products.
inline constexpr int kLeastWideDim = 64;
inline constexpr int kMostWideDim = 576;
inline constexpr int kWideThreads = 256;
inline constexpr int kWideWarps = kWideThreads / kWarp;
inline constexpr int kWideCols = 32;  // queries of a tile
// Tokens of a slab: with warps of 64, memory has no room for more.
inline constexpr int kWideTokens = kWarp == 32 ? 32 : 16;

// Bytes from a row of operands to the next: reads of eight rows at a time hit different banks.
FP8KV_HD constexpr int pitch_of(int dim) {
  return 2 * dim + 16;
}

// Operand A from rows in shared memory, their depths side by side.
__device__ inline void row_operand(const unsigned char* from, int pitch, uint32_t* a) {
  if constexpr (Mma::kHasLoads) {
    Mma::load<false>(from, pitch, a);
  } else {
    const unsigned char* at = from + Mma::row(lane_index()) * pitch + 8 * Mma::group(lane_index());
    const auto words = *reinterpret_cast<const PieceWords<8>*>(at);
    a[0] = words.words[0];
    a[1] = words.words[1];
  }
}

// Operand A from rows in shared memory, each of which has the numbers of one depth.
__device__ inline void depth_operand(const unsigned char* from, int pitch, uint32_t* a) {
  if constexpr (Mma::kHasLoads) {
    Mma::load<true>(from, pitch, a);
  } else {
    const unsigned char* at = from + 2 * Mma::row(lane_index());
    const auto code = [&](int i) -> uint32_t {
      return *reinterpret_cast<const uint16_t*>(at + Mma::depth(lane_index(), i) * pitch);
    };
    a[0] = code(0) | code(1) << 16;
    a[1] = code(2) | code(3) << 16;
  }
}

// Operand B from columns in shared memory, their depths side by side.
__device__ inline void column_operand(const unsigned char* from, int pitch, uint32_t* b) {
  const int group = Mma::group(lane_index());
  const unsigned char* at = from + Mma::row(lane_index()) * pitch;
  const auto word = [&](int i) { return *reinterpret_cast<const uint32_t*>(at + 4 * i); };
  b[0] = word(Mma::kHasLoads ? group : 2 * group);
  b[1] = word(Mma::kHasLoads ? group + 4 : 2 * group + 1);
}

}  // namespace fp8kv::FP8KV_GPU
