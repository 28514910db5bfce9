// Which half of a text a window is in, decided by its ids alone: so the halves of several
// calibrations together are those of one over all of their text, however it was divided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fp8kv {

// Puts the windows of one half before those of the other, each in the order that they had. Returns
// how many are in the first. A half holds about half of many windows, and any number of a few.
size_t put_half_first(std::vector<std::vector<int32_t>>& windows);

}  // namespace fp8kv
