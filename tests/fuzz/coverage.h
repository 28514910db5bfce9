// What an input reaches, counted at every branch of the code that is fuzzed. This runs more often
// than all else, so its file has neither sanitizers nor coverage of its own.
#pragma once

#include <cstddef>

namespace fp8kv::fuzz {

// Before each input.
void forget_reached();

// How much was reached that no input before reached, or not that often.
size_t take_new();

}  // namespace fp8kv::fuzz
