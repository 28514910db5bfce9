// Rotary position embedding as a table: every kind of scaling ends here, so that no op knows any.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/config.h"

namespace fp8kv {

// How many elements of a head of this size RoPE rotates.
int64_t rotary_dim(const RopeConfig& rope, int64_t head_dim);

// [n_positions, rotary_dim] f32: for each position the cosines, then the sines, of its rotary_dim /
// 2 angles. Computed in double, times rope.attention_factor and `factor`. longrope uses its long
// factors if n_positions exceeds the original context.
// Sources: transformers' rope initialisation for "linear", "llama3", "yarn" and "longrope".
std::vector<float> rope_table(const RopeConfig& rope, int64_t head_dim, int64_t n_positions,
                              double factor = 1.0);

// Q's multiplier at a position; see RopeConfig::q_growth.
double q_growth_at(const RopeConfig& rope, double position);

// rope_table times Q's multiplier at each position; see RopeConfig::q_growth.
std::vector<float> q_rope_table(const RopeConfig& rope, int64_t head_dim, int64_t n_positions);

}  // namespace fp8kv
