// Rotary position embedding as a table: every kind of scaling ends here, so that no op knows any.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config.h"

namespace fp8kv {

// How many elements of a head of this size are rotated.
int64_t rotary_dim(const RopeConfig& rope, int64_t head_dim);

// [n_positions, rotary_dim] f32: for each position the cosines, then the sines, of its
// rotary_dim / 2 angles, computed in double, times rope.attention_factor and `factor`. Of longrope
// the long factors hold where there are more positions than the original context has. Sources:
// transformers' rope initialisation for "linear", "llama3", "yarn" and "longrope".
std::vector<float> rope_table(const RopeConfig& rope, int64_t head_dim, int64_t n_positions,
                              double factor = 1.0);

// The same times what Q is multiplied by at each position; see RopeConfig::q_growth.
std::vector<float> q_rope_table(const RopeConfig& rope, int64_t head_dim, int64_t n_positions);

}  // namespace fp8kv
