#include "jinja/values/marked_text.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace fp8kv::jinja {

MarkedText::MarkedText(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) runs_.push_back({bytes_.size(), origin});
}

void MarkedText::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().origin == origin) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), origin});
  }
}

void MarkedText::append(const MarkedText& other, size_t begin, size_t end) {
  FP8KV_ASSERT(&other != this && begin <= end && end <= other.size());
  other.for_each_run(begin, end,
                     [&](std::string_view bytes, Origin origin) { append(bytes, origin); });
}

MarkedText MarkedText::part(size_t begin, size_t end) const {
  MarkedText out;
  out.append(*this, begin, end);
  return out;
}

size_t MarkedText::run_at(size_t byte) const {
  const auto found = std::upper_bound(runs_.begin(), runs_.end(), byte,
                                      [](size_t at, const Run& run) { return at < run.end; });
  return static_cast<size_t>(found - runs_.begin());
}

}  // namespace fp8kv::jinja
