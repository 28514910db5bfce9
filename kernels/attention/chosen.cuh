// Tokens that a row sees by choice. Kernels count places in the row's list in place of positions.
#pragma once

#include "kernels/blocks/sequence.cuh"
#include "kernels/launch_attention.h"

namespace fp8kv::FP8KV_GPU {

// The list of a row and KV head, see AttentionOptions; without choices, places are positions.
struct ChosenTokens {
  const int32_t* list = nullptr;
  int block = 1;

  __device__ inline int position(int place) const {
    return list == nullptr ? place : list[place / block] * block + place % block;
  }
};

__device__ inline ChosenTokens chosen_tokens(const ScoreOptions& options, int row, int kv_head) {
  if (options.chosen == nullptr) return {};
  const int own = options.chosen_lists > 1 ? kv_head : 0;
  const int64_t list = static_cast<int64_t>(row) * options.chosen_lists + own;
  return {options.chosen + list * options.chosen_count, options.chosen_block};
}

// The places of a row that sees the positions `visible`.
__device__ inline Visible visible_places(const ScoreOptions& options, Visible visible) {
  if (options.chosen == nullptr) return visible;
  const int block = options.chosen_block;
  // The last block ends at the row itself, or has ended before it.
  const int last = options.chosen_pooled ? visible.end % block : (visible.end - 1) % block + 1;
  const int most = (options.chosen_count - 1) * block + last;
  if (visible.end > most) visible.end = most;
  return visible;
}

}  // namespace fp8kv::FP8KV_GPU
