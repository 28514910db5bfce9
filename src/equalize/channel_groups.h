// Which channels of a head share an exponent: a rotation turns two of them into each other, and a
// factor passes through it only where both have the same.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config.h"

namespace fp8kv {

// One exponent each: a pair of channels, or a single one that nothing rotates.
using ChannelGroups = std::vector<std::vector<int64_t>>;

// All channels of a K head of the layer, each in one group; pairs first. REQUIRES a layer with
// attention, and no latent attention.
ChannelGroups channel_groups(const ModelConfig& config, int64_t layer);

}  // namespace fp8kv
