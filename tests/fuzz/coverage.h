// Counts the branches of the fuzzed code that an input reaches. The counter runs more often than
// any other code, so its file is built without sanitizers and coverage.
#pragma once

#include <cstddef>

namespace fp8kv::fuzz {

// Clears the counts. Call it before each input.
void forget_reached();

// The number of places that the last input reached for the first time, or more often than any input
// before.
size_t take_new();

}  // namespace fp8kv::fuzz
