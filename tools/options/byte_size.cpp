#include "options/byte_size.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

namespace fp8kv {
namespace {

// The factor that a unit stands for; nullopt for no unit.
std::optional<double> factor_of(std::string unit) {
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (unit.empty() || unit == "b") return 1.0;
  constexpr std::string_view kPrefixes = "kmgt";
  const size_t power = kPrefixes.find(unit[0]);
  if (power == kPrefixes.npos) return std::nullopt;
  const std::string rest = unit.substr(1);
  if (rest != "" && rest != "b" && rest != "ib") return std::nullopt;
  return std::pow(rest == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
}

}  // namespace

std::optional<uint64_t> bytes_from_text(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || !std::isfinite(number)) return std::nullopt;
  // "80 GiB", as this tool prints it.
  const char* const unit = parsed.ptr + (end - parsed.ptr > 1 && *parsed.ptr == ' ' ? 1 : 0);
  const auto factor = factor_of(std::string(unit, end));
  if (!factor) return std::nullopt;
  const double bytes = std::floor(number * *factor);
  if (!(bytes >= 1 && bytes < 0x1p60)) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

}  // namespace fp8kv
