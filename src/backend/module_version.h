// The version by which a program and a module know that they fit each other.
#pragma once

#include <cstddef>
#include <string_view>

namespace fp8kv {

// "0.1.0, interface 3f9a0c41d2e7": the version of fp8kv, and a digest of the headers that both
// sides compile. A rebuilt program thus tells a module of older code from its own.
const char* module_version();

// Returns whether a program of this module_version() may use a module built with this code. If not,
// writes the reason to `reason`, with a remedy on its second line.
bool fits_program(std::string_view program, char* reason, size_t reason_bytes);

}  // namespace fp8kv
