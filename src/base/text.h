// Small string helpers: they build messages, quote foreign names and suggest the nearest known
// name.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace fp8kv {

namespace text_detail {
inline void append(std::string& out, std::string_view part) {
  out += part;
}
inline void append(std::string& out, char part) {
  out += part;
}
template <std::same_as<bool> T>  // only bool itself: pointers would convert to it
void append(std::string& out, T part) {
  out += part ? "true" : "false";
}
template <typename T>
requires(std::is_arithmetic_v<T> && !std::is_same_v<T, char> &&
         !std::is_same_v<T, bool>) void append(std::string& out, T part) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, part).ptr;
  out.append(buffer, end);
}
}  // namespace text_detail

// Joins strings and numbers. Floating-point numbers appear in their shortest exact form.
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (text_detail::append(out, parts), ...);
  return out;
}

// 'name' in quotes, safe to print whatever file it came from. Control characters, quotes,
// backslashes and invalid UTF-8 are escaped. The text is cut at 200 bytes.
std::string quote(std::string_view name);

// Like quote, but without the quotes, for use within a line.
std::string plain(std::string_view name);

// The name of a file for JSON. JSON is UTF-8, while names are any bytes: a name that is not UTF-8
// is escaped like in `plain`.
std::string utf8_name(std::string_view name);

// Joins items: "a, b and c".
std::string join(std::span<const std::string> items, std::string_view last = " and ");

// The candidate nearest to `name` by edit distance, or "" if none is within a third of its length.
std::string nearest(std::string_view name, std::span<const std::string> candidates);

// " (did you mean 'x'?)", or "" if no candidate is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

// 1536 -> "1.5 KiB"; binary prefixes.
std::string human_bytes(uint64_t bytes);

// 12345678 -> "12,345,678".
std::string grouped(uint64_t number);

// "1 file", "3 files".
std::string count_of(uint64_t number, std::string_view noun);

// `value` with `decimals` digits after the point.
std::string fixed(double value, int decimals);

// Whether `bytes` is well-formed UTF-8 (no surrogates, no overlong forms). If `bad_at` is given, it
// receives the offset of the first bad byte.
bool is_utf8(std::string_view bytes, size_t* bad_at = nullptr);

// Compares versions as numbers: "0.27.1" is before "0.43". False if `version` is not a version.
// REQUIRES `bound` to be one.
bool version_before(const std::string& version, const std::string& bound);

}  // namespace fp8kv
