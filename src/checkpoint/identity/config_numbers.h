// Collects the numbers of a config that K and V depend on. kv_config.h says which. Internal to
// checkpoint.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "core/model/model_identity.h"

namespace fp8kv {

class ConfigNumbers {
 public:
  template <typename Value>
  void add(const std::string& key, const Value& value) {
    numbers_.push_back({key, cat(value)});
  }
  // Writes whole numbers without an exponent: "500000".
  void add(const std::string& key, double value) {
    const bool is_whole = value == std::floor(value) && std::abs(value) < 1e15;
    numbers_.push_back({key, is_whole ? cat(static_cast<int64_t>(value)) : cat(value)});
  }
  template <typename Value>
  void add_unless(const Value& usual, const std::string& key, const Value& value) {
    if (value != usual) add(key, value);
  }
  std::vector<ConfigNumber> sorted() && {
    std::sort(numbers_.begin(), numbers_.end(),
              [](const ConfigNumber& a, const ConfigNumber& b) { return a.key < b.key; });
    return std::move(numbers_);
  }

 private:
  std::vector<ConfigNumber> numbers_;
};

// "0-5 full, 6 window 4096": the text that `text_of` gives for each layer, with equal neighbours
// merged. Only "full" if all layers are equal.
template <typename TextOf>
std::string by_layer(int64_t n_layers, const TextOf& text_of) {
  std::string out;
  for (int64_t first = 0, next = 0; first < n_layers; first = next) {
    const std::string text = text_of(first);
    while (next < n_layers && text_of(next) == text) ++next;
    if (next - first == n_layers) return text;
    const std::string layers = next - first > 1 ? cat(first, "-", next - 1) : cat(first);
    out += cat(out.empty() ? "" : ", ", layers, " ", text);
  }
  return out;
}

}  // namespace fp8kv
