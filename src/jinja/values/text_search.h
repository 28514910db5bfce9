// Finding a text in another in time that grows with the two of them, never with their product.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace fp8kv::jinja {

class Runtime;

// Spends the steps of both texts when it is made; all calls of find() together look at every byte
// once or twice, as long as each goes on behind what the one before found. REQUIRES both to outlive
// it.
class TextSearch {
 public:
  TextSearch(Runtime& runtime, std::string_view text, std::string_view part);

  // The first place at or behind `at`, or npos.
  size_t find(size_t at) const;
  // The last place that ends at or before `end`, or npos.
  size_t find_last(size_t end) const;

 private:
  std::string_view text_;
  std::string_view part_;
  // By Knuth, Morris and Pratt: of each beginning of `part_`, the length of the longest shorter one
  // that it ends with; of its reverse for find_last. Empty where `part_` is short.
  std::vector<size_t> borders_;
  std::vector<size_t> borders_from_right_;
};

}  // namespace fp8kv::jinja
