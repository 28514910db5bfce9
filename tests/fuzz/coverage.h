// Counts the branches of the fuzzed code that an input reaches. The counter runs more often than
// any other code, so its file is built without sanitizers and coverage.
#pragma once

#include <cstddef>

namespace fp8kv::fuzz {

// Clears the counts, and counts from here on.
void begin_counting();

// Counts no more. Code runs about twice as fast until the next begin_counting().
void stop_counting();

// The number of places that the last input reached for the first time, or more often than any input
// before.
size_t take_new();

}  // namespace fp8kv::fuzz
