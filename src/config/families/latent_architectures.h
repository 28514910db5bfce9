// Families with latent attention (MLA): rows of the table of architectures. Internal to config.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> latent_architectures();

}  // namespace fp8kv
