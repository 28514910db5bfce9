// The text of the files in `script`, embedded in the program.
#pragma once

#include <string_view>

namespace fp8kv {

std::string_view load_scales_script();

}  // namespace fp8kv
