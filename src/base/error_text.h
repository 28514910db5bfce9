// Formats an error for stderr.
#pragma once

#include <string>

#include "base/error.h"

namespace fp8kv {

// `prefix` and the message with its contexts, then the help. Foreign names in them cannot control a
// terminal.
std::string error_text(const std::string& prefix, const Error& error);

}  // namespace fp8kv
