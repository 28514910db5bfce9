// Rotary position embedding as a table: every kind of scaling ends here, so that no op knows any.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config.h"

namespace fp8kv {

// [n_positions, head_dim] f32: for each position the cosines, then the sines, of its head_dim / 2
// angles, computed in double, times rope.attention_factor.
// Sources: transformers' rope initialisation for "linear", "llama3" and "yarn".
std::vector<float> rope_table(const RopeConfig& rope, int64_t head_dim, int64_t n_positions);

}  // namespace fp8kv
