// Assigns windows to parts of a text by their ids alone. So the parts of several calibrations add
// up to those of one calibration over all of their text, however it was divided.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/scales/scales.h"

namespace fp8kv {

// The numbers of windows in the first eighth, the first quarter and the first half.
using TextParts = std::array<size_t, kTextParts>;

// Sorts windows by part: the first eighth, the rest of the first quarter, the rest of the first
// half, then the others. Keeps the order within each. Returns the number of windows in each part.
// Parts have about their nominal share of many windows, but any number of a few.
TextParts put_parts_first(std::span<std::vector<int32_t>> windows);

}  // namespace fp8kv
