#include "show/scales/layer_bars.h"

#include <algorithm>

#include "show/output.h"

namespace fp8kv {

std::string layer_bars(const std::string& name, std::span<const std::optional<double>> shares,
                       const std::string& after) {
  constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr size_t kInLine = 64;
  std::string text;
  for (size_t first = 0; first < shares.size(); first += kInLine) {
    const size_t end = std::min(shares.size(), first + kInLine);
    std::string bars;
    for (size_t i = first; i < end; ++i) {
      if (!shares[i]) {
        bars += "·";
        continue;
      }
      bars += kBars[static_cast<size_t>(std::clamp(*shares[i] * 8, 0.0, 7.0))];
    }
    if (end == shares.size() && !after.empty()) bars += "  " + after;
    text += noted(first == 0 ? name : "", bars);
  }
  return text;
}

}  // namespace fp8kv
