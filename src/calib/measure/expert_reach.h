// Which experts a calibration's tokens were sent to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/config.h"

namespace fp8kv {

// Returns "no token reached 3 of 12 experts: layer 0: 2 and 5; layer 1: 4". Looks only at layers
// whose experts ran, which have some token. Long lists are cut. Returns nullopt if every expert was
// reached, and for a model without experts.   reached [n_layers][experts]: tokens of each
std::optional<std::string> unreached_experts(const ModelConfig& config,
                                             const std::vector<std::vector<uint64_t>>& reached);

}  // namespace fp8kv
