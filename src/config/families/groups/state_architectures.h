// Families in which most layers keep a state of fixed size and a few have attention: their special
// config keys and their tensors.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> state_architectures();

// Reads the sizes of a gated DeltaNet into out.recurrence.
void parse_delta_sizes(const Json& config, ModelConfig& out);

}  // namespace fp8kv
