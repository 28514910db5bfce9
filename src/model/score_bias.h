// ALiBi as a table, so that no op knows it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config.h"

namespace fp8kv {

// The slope of each head: 2^(-8 i / n) of n heads from i = 1 on, n a power of two; what is above
// the largest power of two gets every other slope of twice as many.
// Source: Press et al., Train Short, Test Long.
std::vector<double> alibi_slopes(int64_t n_heads);

// [n_heads, n_positions] f32: what is added to the score, scaled, of the token at a position. That
// softmax takes it as what it is relative to the row's own position. REQUIRES config.block to have
// a ScoreBias.
// Source: transformers' build_alibi_tensor of Falcon, where bf16 rounds positions as well.
std::vector<float> score_bias_table(const ModelConfig& config, int64_t n_positions);

}  // namespace fp8kv
