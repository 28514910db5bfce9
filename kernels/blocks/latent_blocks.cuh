// Latents that a cache keeps in blocks (core/latent_blocks.h), as kernels write and read them.
#pragma once

#include "core/latent_blocks.h"
#include "core/paged.h"
#include "kernels/blocks/elements.cuh"

namespace fp8kv::FP8KV_GPU {

// Stands for the cache's element type in kernels that take one.
struct InBlocks {};

template <typename Cache>
inline constexpr bool kInBlocks = false;
template <>
inline constexpr bool kInBlocks<InBlocks> = true;

using BlockCode = Fp8<Fp8Format::e4m3fn>;

__device__ inline uint8_t* block_token(const PagedKv& kv, int64_t page, int64_t in_page) {
  return static_cast<uint8_t*>(kv.k) + kv.block_offset(page, in_page);
}

// Element d of the token's K: what is rotated comes first, then the latent.
__device__ inline float block_value(const uint8_t* token, const LatentBlocks& blocks, int d) {
  if (d < blocks.rope_dim) {
    return reinterpret_cast<const Bf16*>(token + blocks.rope_at())[d].value();
  }
  const int i = d - blocks.rope_dim;
  const auto* scales = reinterpret_cast<const float*>(token + blocks.scales_at());
  return BlockCode{token[i]}.value() * scales[i / kLatentBlock];
}

}  // namespace fp8kv::FP8KV_GPU
