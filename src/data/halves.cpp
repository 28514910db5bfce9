#include "data/halves.h"

#include <algorithm>

#include "base/digest.h"

namespace fp8kv {
namespace {

// By the lowest bit of the first hex digit of SHA-256 over the ids: one in two, whatever the text.
bool is_in_first(const std::vector<int32_t>& window) {
  Sha256 digest;
  digest.add({reinterpret_cast<const char*>(window.data()), window.size() * sizeof(int32_t)});
  const char first = digest.hex()[0];
  return (first <= '9' ? first - '0' : first - 'a') % 2 == 0;
}

}  // namespace

size_t put_half_first(std::vector<std::vector<int32_t>>& windows) {
  const auto middle = std::stable_partition(windows.begin(), windows.end(), is_in_first);
  return static_cast<size_t>(middle - windows.begin());
}

}  // namespace fp8kv
