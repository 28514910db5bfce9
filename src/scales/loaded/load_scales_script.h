// load_scales.py, which is in the program itself.
#pragma once

#include <string_view>

namespace fp8kv {

std::string_view load_scales_script();

}  // namespace fp8kv
