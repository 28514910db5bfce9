// One layer's paged KV cache as every append and attention sees it.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/hd.h"
#include "core/latent_blocks.h"

namespace fp8kv {

// A plain value, passed to kernels as it is.
// K and V are separate pools of [n_pages, n_kv_heads, page_size, head_dim]; a token's place is its
// slot, page * page_size + offset. Elements are f32, f16, bf16 or one of the fp8 types; an fp8
// element is worth code * scale[kv_head].
// Latent attention has one pool: V is the last `v_in_k` elements of each K, and `v` points at the
// first of them. The scales are then the same. With `latent_blocks` a token is what LatentBlocks
// says instead of elements, `v` is `k`, and there are no other scales.
struct PagedKv {
  void* k = nullptr;
  void* v = nullptr;
  const float* k_scale = nullptr;  // [n_kv_heads]; null unless fp8
  const float* v_scale = nullptr;  // [n_kv_heads]; null unless fp8
  DType dtype = DType::f32;
  int32_t page_size = 0;
  int32_t n_kv_heads = 0;
  int32_t head_dim = 0;  // of K, and from one token to the next
  int32_t v_in_k = 0;    // 0: V has a pool of its own, with heads as those of K
  bool latent_blocks = false;

  FP8KV_HD int32_t v_dim() const { return v_in_k > 0 ? v_in_k : head_dim; }

  // REQUIRES latent_blocks.
  FP8KV_HD LatentBlocks blocks() const { return {v_in_k, head_dim - v_in_k}; }
  // The first byte of a token of latents in blocks, which have one head.
  FP8KV_HD int64_t block_offset(int64_t page, int64_t in_page) const {
    return (page * page_size + in_page) * blocks().bytes();
  }

  // Index of the first element of (page, head, offset within the page).
  FP8KV_HD int64_t offset(int64_t page, int64_t head, int64_t in_page) const {
    return ((page * n_kv_heads + head) * page_size + in_page) * head_dim;
  }
};

}  // namespace fp8kv
