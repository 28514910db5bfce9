// Families whose layers keep a state of fixed size but for a few with attention: what their
// config.json says besides, and their tensors.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> state_architectures();

}  // namespace fp8kv
