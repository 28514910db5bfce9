// Families whose layers are Llama's but for names, multipliers, positions or experts, as rows of
// the table of architectures. Internal to config.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> llama_variants();

}  // namespace fp8kv
