// A trie of strings with numbers. Finds the strings that begin at a place in a text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/models/flat_map.h"

namespace fp8kv {

class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;

  // Returns false if the string is already there. REQUIRES a non-empty string, and value >= 0.
  bool add(std::string_view text, int32_t value) {
    uint32_t node = 0;
    begins_[static_cast<unsigned char>(text[0])] = true;
    for (const char c : text) {
      uint32_t& next = next_[key(node, c)];
      if (next == 0) {
        next = static_cast<uint32_t>(values_.size());
        values_.push_back(kNone);
      }
      node = next;
    }
    if (values_[node] != kNone) return false;
    values_[node] = value;
    longest_ = std::max(longest_, text.size());
    ++size_;
    return true;
  }

  // Calls visit(length, value) for every string that begins at `at` in `text`, the shortest first.
  template <typename Visit>
  void for_each_at(std::string_view text, size_t at, Visit&& visit) const {
    uint32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
      const uint32_t* next = next_.find(key(node, text[i]));
      if (!next) return;
      node = *next;
      if (values_[node] != kNone) visit(i + 1 - at, values_[node]);
    }
  }

  struct Found {
    int32_t value;
    size_t length;
  };
  std::optional<Found> longest_at(std::string_view text, size_t at) const {
    std::optional<Found> longest;
    if (!can_begin(text[at])) return longest;
    for_each_at(text, at, [&](size_t length, int32_t value) { longest = Found{value, length}; });
    return longest;
  }

  bool can_begin(char c) const { return begins_[static_cast<unsigned char>(c)]; }
  size_t size() const { return size_; }
  size_t longest() const { return longest_; }  // bytes of the longest string

 private:
  static uint64_t key(uint32_t node, char c) {
    return uint64_t{node} << 8 | static_cast<unsigned char>(c);
  }

  FlatMap<uint32_t> next_;              // from node and byte to the next node; 0 is the root
  std::vector<int32_t> values_{kNone};  // value of the string that ends at a node
  bool begins_[256] = {};
  size_t size_ = 0;
  size_t longest_ = 0;
};

}  // namespace fp8kv
