// The text of `fp8kv --version`: version, build type, instruction sets and libraries of the
// program. `fp8kv doctor` shows the hardware and libraries of the machine.
#pragma once

#include <string>

namespace fp8kv {

// The version alone on the first line.
std::string version_text();

std::string version_json();

}  // namespace fp8kv
