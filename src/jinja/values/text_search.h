// Finds one text in another in time that grows with the sum of their lengths, not the product.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace fp8kv::jinja {

class Runtime;

// Spends the steps of both texts when it is made. All calls of find() together look at every byte
// once or twice, if each continues behind the last find. REQUIRES both texts to outlive this
// object.
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
  // The failure function of Knuth, Morris and Pratt. For each beginning of `part_`, it has the
  // length of the longest shorter beginning that is its ending. find_last uses that of the reversed
  // part. Empty if `part_` is short.
  std::vector<size_t> borders_;
  std::vector<size_t> borders_from_right_;
};

}  // namespace fp8kv::jinja
