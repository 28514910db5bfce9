// An error as the lines that stderr gets.
#pragma once

#include <string>

#include "base/error.h"

namespace fp8kv {

// The chain of context behind `prefix`, then the way out. Foreign names in them do nothing to a
// terminal.
std::string error_text(const std::string& prefix, const Error& error);

}  // namespace fp8kv
