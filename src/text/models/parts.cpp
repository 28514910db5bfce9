#include "text/models/parts.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "unicode/characters.h"

namespace fp8kv {

void check_keys(const Json& part, std::initializer_list<std::string_view> known) {
  if (!part.is_object()) part.at("type");  // throws: not an object
  for (size_t i = 0; i < part.size(); ++i) {
    if (std::find(known.begin(), known.end(), part.key(i)) != known.end()) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    fail(part.where(), ": the key ", quote(part.key(i)), " is not supported, only ", join(names),
         names.size() == 1 ? " is" : " are");
  }
}

void fail_unsupported(const Json& part, const std::string& type,
                      std::initializer_list<std::string_view> supported) {
  const std::vector<std::string> names(supported.begin(), supported.end());
  fail(part.where(), ": the type ", quote(type), " is not supported, only ", join(names),
       names.size() == 1 ? " is" : " are");
}

Json array_at(const Json& part, std::string_view key) {
  const Json value = part.at(key);
  if (!value.is_array()) fail(value.where(), ": is ", value.brief(), ", expected an array");
  return value;
}

char32_t character_at(const Json& part, std::string_view key) {
  const Json value = part.at(key);
  const std::string& text = value.as_string();
  size_t at = 0;
  const char32_t c = text.empty() ? 0 : next_char(text, at);
  if (text.empty() || at != text.size()) {
    fail(value.where(), ": is ", quote(text), ", expected one character");
  }
  return c;
}

// Takes all digits as one integer, as many as 64 bits hold, times or divided by a power of ten.
// Source: serde_json 1.0, src/de.rs, without its feature float_roundtrip.
double library_double(const Json& number) {
  if (!number.is_number()) return number.as_double();  // throws: not a number
  const std::string text = number.number_text();
  size_t at = text.starts_with('-') ? 1 : 0;
  uint64_t digits = 0;
  int exponent = 0;
  bool full = false;
  bool in_fraction = false;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      in_fraction = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    full = full || digits > (UINT64_MAX - digit) / 10;
    if (!full) digits = 10 * digits + digit;
    if (full != in_fraction) exponent += full ? 1 : -1;
  }
  if (text.size() > at + 6) return number.as_double();  // nearly 0, or not readable
  if (at < text.size()) exponent += std::stoi(text.substr(at + 1));
  auto value = static_cast<double>(digits);
  for (; exponent < -308 && value != 0; exponent += 308) value /= 1e308;
  if (value == 0 || exponent > 308) return number.as_double();
  const double power = std::stod(cat("1e", std::abs(exponent)));
  value = exponent < 0 ? value / power : value * power;
  return text.starts_with('-') ? -value : value;
}

}  // namespace fp8kv
