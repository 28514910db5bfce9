#include "draw/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace fp8kv {
namespace {

// "1.50" becomes "1.5", "2.00" becomes "2".
std::string without_zeros(std::string digits) {
  if (digits.find('.') == digits.npos) return digits;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

}  // namespace

std::string superscript(int number) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string raised;
  for (const char c : std::to_string(number)) raised += c == '-' ? "⁻" : kDigits[c - '0'];
  return raised;
}

std::string short_number(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-∞" : "∞";
  if (value == 0) return "0";
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, "%.*e", digits - 1, value);
  const double rounded = std::strtod(buffer, nullptr);
  const int exponent = std::atoi(std::strchr(buffer, 'e') + 1);
  if (exponent < -5 || exponent > 5) {
    const std::string factor = without_zeros(std::string(buffer, std::strchr(buffer, 'e')));
    const std::string power = "10" + superscript(exponent);
    return factor == "1" ? power : factor == "-1" ? "-" + power : factor + "×" + power;
  }
  std::snprintf(buffer, sizeof buffer, "%.*f", std::max(0, digits - 1 - exponent), rounded);
  return without_zeros(buffer);
}

std::string short_percent(double share, int digits) {
  if (!std::isfinite(share)) return short_number(share);
  return short_number(share * 100, digits) + " %";
}

std::string signed_percent(double share, double error) {
  if (!std::isfinite(share)) return short_number(share);
  return cat(share < 0 ? "" : "+", short_percent(share), " ± ", short_percent(error, 2));
}

}  // namespace fp8kv
