// Families that differ from Llama only in names, multipliers, positions or experts: rows of the
// table of architectures. Internal to config.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> llama_variants();

}  // namespace fp8kv
