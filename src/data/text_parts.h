// In which parts of a text a window is, decided by its ids alone: so the parts of several
// calibrations together are those of one over all of their text, however it was divided.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/scales.h"

namespace fp8kv {

// Windows in the first eighth, in the first quarter, and in the first half.
using TextParts = std::array<size_t, kTextParts>;

// Puts the windows of the first eighth before the rest of the first quarter, those before the rest
// of the first half, and those before the others, each in the order that they had. Returns how many
// are in each part: about that share of many windows, and any number of a few.
TextParts put_parts_first(std::span<std::vector<int32_t>> windows);

}  // namespace fp8kv
