// The layout of one token in fp8_ds_mla. E4M3FN codes of the latent come first, then an F32 scale
// for each block of 128 codes, then the rotated elements in BF16. vLLM and SGLang use 656 bytes for
// DeepSeek V3.2 (a latent of 512, 64 rotated elements). Other sizes follow the same rule.
#pragma once

#include <cfloat>
#include <cstdint>

#include "core/numbers/hd.h"

namespace fp8kv {

inline constexpr int32_t kLatentBlock = 128;

struct LatentBlocks {
  int32_t rank = 0;      // a multiple of kLatentBlock
  int32_t rope_dim = 0;  // even

  FP8KV_HD int32_t blocks() const { return rank / kLatentBlock; }
  // Byte offsets from the start of the token.
  FP8KV_HD int32_t scales_at() const { return rank; }
  FP8KV_HD int32_t rope_at() const { return rank + 4 * blocks(); }
  FP8KV_HD int32_t bytes() const { return rope_at() + 2 * rope_dim; }
};

// The scale of a block. Like vLLM's concat_and_cache_ds_mla, it stays above zero even for blocks of
// (almost) zeros, so that dividing by it works.
FP8KV_HD float latent_block_scale(float amax) {
  const float scale = amax / 448.0f;
  return scale > FLT_MIN ? scale : FLT_MIN;
}

}  // namespace fp8kv
