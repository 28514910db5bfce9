// Decoders older than Llama, as rows of the table of architectures: layer norms, plain feed-forward
// parts, fused projections, learned positions. Internal to config.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> older_architectures();

}  // namespace fp8kv
