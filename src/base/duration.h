// Writes a length of time as text.
#pragma once

#include <string>

namespace fp8kv {

// "14 min 5 s"; whole seconds alone for less than a minute.
std::string duration(double seconds);

}  // namespace fp8kv
