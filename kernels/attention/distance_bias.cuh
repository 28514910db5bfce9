// A bias of scores for the distance between two tokens: see DistanceBias in backend/op_arguments.h.
#pragma once

#include "kernels/blocks/elements.cuh"
#include "kernels/launch_attention.h"

namespace fp8kv::FP8KV_GPU {

// The bias of the token at `position` in the scores of query head `item`, which is in `row`.
// Neighbouring positions read neighbouring elements of the bank.
template <typename T>
__device__ inline float distance_bias(const AttentionArguments& attention, int64_t item, int row,
                                      int position) {
  const ScoreOptions& options = attention.scores;
  const int at = attention.rows.positions[row], distance = at - position;
  if (distance >= options.distance_extent) return 0.0f;
  const T* states = static_cast<const T*>(options.distance_states) + item * options.distance_dim;
  float sum = 0.0f;
  for (int j = 0; j < options.distance_dim; ++j) {
    const int64_t in_bank = static_cast<int64_t>(j) * options.distance_extent + distance;
    sum = fused(states[j].value(), number_at(options.distance_bank, options.bank_dtype, in_bank),
                sum);
  }
  return options.distance_growth == nullptr ? sum : sum * options.distance_growth[at];
}

}  // namespace fp8kv::FP8KV_GPU
