// The channels of a head that share an exponent. A rotation mixes two channels, and a factor passes
// through it only if both channels have the same one.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/config.h"

namespace fp8kv {

// Each group has one exponent: a pair of channels, or a single channel that nothing rotates.
using ChannelGroups = std::vector<std::vector<int64_t>>;

// Returns all channels of a K head of the layer, each in one group, pairs first. REQUIRES a layer
// with attention that is not latent.
ChannelGroups channel_groups(const ModelConfig& config, int64_t layer);

}  // namespace fp8kv
