#include "jinja/values/text_search.h"

#include <algorithm>

#include "jinja/values/runtime.h"

namespace fp8kv::jinja {
namespace {

// Up to this length of `part_`, plain search is fast: it costs at most this much per byte of text.
constexpr size_t kShort = 16;

std::vector<size_t> borders_of(auto begin, size_t size) {
  std::vector<size_t> borders(size, 0);
  for (size_t i = 1, length = 0; i < size; ++i) {
    while (length > 0 && begin[static_cast<ptrdiff_t>(i)] != begin[static_cast<ptrdiff_t>(length)])
      length = borders[length - 1];
    if (begin[static_cast<ptrdiff_t>(i)] == begin[static_cast<ptrdiff_t>(length)]) ++length;
    borders[i] = length;
  }
  return borders;
}

// The number of bytes from `begin` to the end of the first `part`; npos if there is none.
size_t end_of_first(auto begin, auto end, auto part, const std::vector<size_t>& borders) {
  size_t length = 0;
  for (auto at = begin; at != end; ++at) {
    while (length > 0 && *at != part[static_cast<ptrdiff_t>(length)]) length = borders[length - 1];
    if (*at == part[static_cast<ptrdiff_t>(length)]) ++length;
    if (length == borders.size()) return static_cast<size_t>(at - begin) + 1;
  }
  return std::string_view::npos;
}

}  // namespace

TextSearch::TextSearch(Runtime& runtime, std::string_view text, std::string_view part)
    : text_(text), part_(part) {
  runtime.spend_bytes(text.size());
  if (part.size() <= kShort || part.size() > text.size()) return;
  runtime.spend_bytes(part.size());
  borders_ = borders_of(part.begin(), part.size());
  borders_from_right_ = borders_of(part.rbegin(), part.size());
}

size_t TextSearch::find(size_t at) const {
  if (at > text_.size() || part_.size() > text_.size() - at) return text_.npos;
  if (borders_.empty()) return text_.find(part_, at);
  const auto begin = text_.begin() + static_cast<ptrdiff_t>(at);
  const size_t end = end_of_first(begin, text_.end(), part_.begin(), borders_);
  return end == text_.npos ? end : at + end - part_.size();
}

size_t TextSearch::find_last(size_t end) const {
  end = std::min(end, text_.size());
  if (part_.size() > end) return text_.npos;
  if (borders_.empty()) return text_.rfind(part_, end - part_.size());
  const auto begin = text_.rbegin() + static_cast<ptrdiff_t>(text_.size() - end);
  const size_t found = end_of_first(begin, text_.rend(), part_.rbegin(), borders_from_right_);
  return found == text_.npos ? found : end - found;
}

}  // namespace fp8kv::jinja
