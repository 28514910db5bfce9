#include "data/text_parts.h"

#include <algorithm>
#include <bit>

#include "base/digest.h"

namespace fp8kv {
namespace {

// The smallest part that a window belongs to: 0 is the eighth, kTextParts is none. It depends on
// the first hex digit of SHA-256 over the ids. The half has the digits divisible by 2, the quarter
// those by 4, the eighth those by 8.
size_t smallest_part_of(const std::vector<int32_t>& window) {
  Sha256 digest;
  digest.add({reinterpret_cast<const char*>(window.data()), window.size() * sizeof(int32_t)});
  const char first = digest.hex()[0];
  const auto digit = static_cast<unsigned>(first <= '9' ? first - '0' : first - 'a' + 10);
  return kTextParts - std::min<size_t>(static_cast<size_t>(std::countr_zero(digit)), kTextParts);
}

}  // namespace

TextParts put_parts_first(std::span<std::vector<int32_t>> windows) {
  TextParts parts;
  auto begin = windows.begin();
  for (size_t part = 0; part < kTextParts; ++part) {
    begin = std::stable_partition(
        begin, windows.end(), [&](const auto& window) { return smallest_part_of(window) == part; });
    parts[part] = static_cast<size_t>(begin - windows.begin());
  }
  return parts;
}

}  // namespace fp8kv
