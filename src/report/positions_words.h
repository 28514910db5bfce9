// Describes the prompt lengths that were measured. For models whose rotation of K changes in long
// prompts, or multiplies K by a factor (yarn, longrope, dynamic).
#pragma once

#include <string>
#include <vector>

#include "core/scales/scales.h"

namespace fp8kv {

// The lengths that no run has measured: "prompts beyond 4096 tokens"; "" if every rotation was.
std::string unmeasured_positions(const PositionsNote& note);

// Up to three lines: what was measured, what was not and could reach, and how to measure it. Empty
// for other kinds of models.
std::vector<std::string> positions_lines(const PositionsNote& note);

}  // namespace fp8kv
