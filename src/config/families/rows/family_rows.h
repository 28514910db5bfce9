// Families that have a file of their own, with everything that config.json and the tensors of the
// family differ in. A new family: its file here, its name in family_rows.cpp and CMakeLists.txt.
#pragma once

#include <span>

#include "config/families/architecture.h"

namespace fp8kv {

std::span<const Architecture> family_rows();

}  // namespace fp8kv
