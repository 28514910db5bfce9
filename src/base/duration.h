// A length of time as text.
#pragma once

#include <string>

namespace fp8kv {

// "14 min 5 s"; a length of less than a minute in whole seconds.
std::string duration(double seconds);

}  // namespace fp8kv
