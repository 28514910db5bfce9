// Families with Mamba-2 layers: their special config keys and their tensors.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> mamba_architectures();

}  // namespace fp8kv
