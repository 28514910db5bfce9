// A bar for each layer, in lines that fit a terminal of 80 columns.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace fp8kv {

// "layers    ▃█▄·▂". `shares` has one entry for each layer, from 0 for the lowest bar to 1 for the
// highest. "·" stands for a layer without a value. `after` follows the bars on the last line. Every
// line ends with a newline.
std::string layer_bars(const std::string& name, std::span<const std::optional<double>> shares,
                       const std::string& after = "");

}  // namespace fp8kv
