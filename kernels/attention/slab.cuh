// Tokens of a paged cache in shared memory, for all warps of a block to read.
#pragma once

#include "kernels/attention/attention.cuh"
#include "kernels/attention/lane_queue.cuh"

namespace fp8kv::FP8KV_GPU {

inline constexpr int kSlabStages = 2;  // slabs of a block: one is used while the next is loaded

// Whether matrix loads (Mma::load) load operands from shared memory. They convert nothing, so
// elements must have 16 bits.
template <typename Cache>
inline constexpr bool kLoads = Mma::kHasLoads && sizeof(Cache) == 2;

// Rows of the cache in shared memory, unchanged. Rows are padded, so that simultaneous reads hit
// different banks. Matrix loads read eight rows at a time. Other kernels read keys as four pieces
// of two rows, and values as four tokens that are two apart.
template <typename Cache, int kHeadDim>
struct Slab {
  static constexpr int kRowBytes = kHeadDim * static_cast<int>(sizeof(Cache));
  static constexpr int kKeyPitch = kRowBytes + (kLoads<Cache> ? 16 : kRowBytes % 128 == 0 ? 64 : 0);
  static constexpr int kValuePitch = kRowBytes + 16;
  // Tokens of a slab: registers and shared memory limit them.
  static constexpr int kTokens = [] {
    int tokens = kRowBytes <= 256 && kHeadDim <= 128 ? 64 : 32;
    while (size_t{kSlabStages} * tokens * (kKeyPitch + kValuePitch) > kMostSharedBytes) tokens /= 2;
    return tokens;
  }();
  static_assert(kTokens >= kTileTokens);
  static constexpr int kGroups = kTokens / kTileTokens;
  static constexpr int kKeyBytes = kTokens * kKeyPitch;
  static constexpr int kBytes = kKeyBytes + kTokens * kValuePitch;
};

template <int kBytes, int kPieces>
__device__ inline void read_pieces(const unsigned char* from, int stride, uint32_t* words) {
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    if constexpr (kBytes == 2) {
      const uint32_t half = *reinterpret_cast<const uint16_t*>(from + piece * stride);
      words[piece / 2] = piece % 2 == 0 ? half : words[piece / 2] | half << 16;
    } else {
      const auto part = *reinterpret_cast<const PieceWords<kBytes>*>(from + piece * stride);
#pragma unroll
      for (int i = 0; i < kBytes / 4; ++i) words[piece * (kBytes / 4) + i] = part.words[i];
    }
  }
}

}  // namespace fp8kv::FP8KV_GPU
