#include "report/numbers.h"

#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace fp8kv {

std::string short_number(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-∞" : "∞";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  return buffer;
}

std::string short_percent(double share, int digits) {
  if (!std::isfinite(share)) return short_number(share);
  return short_number(share * 100, digits) + " %";
}

std::string signed_percent(double share, double error) {
  if (!std::isfinite(share)) return short_number(share);
  return cat(share < 0 ? "" : "+", short_percent(share), " ± ", short_percent(error, 2));
}

std::string number_ranges(const std::vector<size_t>& numbers) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    const bool range = end - i > 2;
    parts.push_back(range ? cat(numbers[i], "–", numbers[end - 1]) : cat(numbers[i]));
    i = range ? end : i + 1;
  }
  return join(parts);
}

}  // namespace fp8kv
