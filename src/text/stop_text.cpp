#include "text/stop_text.h"

#include <algorithm>
#include <utility>

namespace fp8kv {

std::string StopText::add(std::string_view piece) {
  std::string shown;
  for (const char c : piece) {
    if (found_) break;
    held_ += c;
    size_t longest = 0;
    for (const std::string& stop : stops_) {
      if (held_.ends_with(stop)) longest = std::max(longest, stop.size());
    }
    found_ = longest > 0;
    if (found_) {
      shown += held_.substr(0, held_.size() - longest);
      held_.clear();
      break;
    }
    // Shows everything except the longest ending that begins one of the stop strings.
    size_t sure = 0;
    const auto may_begin = [&](const std::string& stop) {
      return stop.starts_with(std::string_view(held_).substr(sure));
    };
    while (std::none_of(stops_.begin(), stops_.end(), may_begin) && sure < held_.size()) ++sure;
    shown += held_.substr(0, sure);
    held_.erase(0, sure);
  }
  return shown;
}

std::string StopText::finish() {
  return std::exchange(held_, {});
}

}  // namespace fp8kv
