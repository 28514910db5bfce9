// The architectures that this program computed first: one table of rows.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> first_architectures();

}  // namespace fp8kv
