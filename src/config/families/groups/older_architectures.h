// Decoders older than Llama: layer norms, plain feed-forward parts, fused projections, learned
// positions. Rows of the table of architectures. Internal to config.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> older_architectures();

}  // namespace fp8kv
