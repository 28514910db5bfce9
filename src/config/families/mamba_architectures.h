// Families with layers of Mamba-2: what their config.json says besides, and their tensors.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> mamba_architectures();

}  // namespace fp8kv
