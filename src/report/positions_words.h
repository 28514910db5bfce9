// What a certificate says of the lengths that were measured, for models whose rotation of K is
// another in long prompts, or has a factor that multiplies K (yarn, longrope, dynamic).
#pragma once

#include <string>
#include <vector>

#include "core/scales.h"

namespace fp8kv {

// What no run has measured: "prompts beyond 4096 tokens"; "" where every rotation was.
std::string unmeasured_positions(const PositionsNote& note);

// What was measured; what was not and can reach; how to measure it: a line each, as far as there is
// something to say. None for models of other kinds.
std::vector<std::string> positions_lines(const PositionsNote& note);

}  // namespace fp8kv
