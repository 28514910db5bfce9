// ALiBi as a table, so that no op knows it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/config.h"

namespace fp8kv {

// The slope of each head i = 1 .. n: 2^(-8 i / n) if n is a power of two. Otherwise heads beyond
// the largest power of two take every other slope of twice that many heads.
// Source: Press et al., Train Short, Test Long.
std::vector<double> alibi_slopes(int64_t n_heads);

// [n_heads, n_positions] f32: the bias added to the scaled score of the token at a position. It
// depends on the absolute position, which is enough: softmax ignores a constant per row. REQUIRES
// config.block to have a ScoreBias.
// Source: transformers' build_alibi_tensor of Falcon, where bf16 rounds positions as well.
std::vector<float> score_bias_table(const ModelConfig& config, int64_t n_positions);

}  // namespace fp8kv
