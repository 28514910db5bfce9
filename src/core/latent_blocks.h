// How fp8_ds_mla keeps a token of a latent cache: E4M3FN codes of the latent, then an F32 scale for
// each block of 128 of them, then what is rotated in BF16. 656 bytes for a latent of 512 and 64
// rotated elements, which is what vLLM and SGLang have for DeepSeek V3.2; other sizes are laid out
// by the same rule.
#pragma once

#include <cfloat>
#include <cstdint>

#include "core/hd.h"

namespace fp8kv {

inline constexpr int32_t kLatentBlock = 128;

struct LatentBlocks {
  int32_t rank = 0;      // a multiple of kLatentBlock
  int32_t rope_dim = 0;  // even

  FP8KV_HD int32_t blocks() const { return rank / kLatentBlock; }
  // Bytes from the first of a token.
  FP8KV_HD int32_t scales_at() const { return rank; }
  FP8KV_HD int32_t rope_at() const { return rank + 4 * blocks(); }
  FP8KV_HD int32_t bytes() const { return rope_at() + 2 * rope_dim; }
};

// As vLLM's concat_and_cache_ds_mla: a block of zeros, or of nearly that, has a scale to divide by.
FP8KV_HD float latent_block_scale(float amax) {
  const float scale = amax / 448.0f;
  return scale > FLT_MIN ? scale : FLT_MIN;
}

}  // namespace fp8kv
