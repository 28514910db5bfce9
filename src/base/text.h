// Small string helpers: they build messages, quote foreign names and suggest the nearest known
// name.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace fp8kv {

// One part of a message: a text or a number. It refers to a text, so it lives no longer.
class MessagePart {
 public:
  MessagePart(std::string_view text) : kind_(Kind::text), text_{text.data(), text.size()} {}
  MessagePart(const std::string& text) : MessagePart(std::string_view(text)) {}
  MessagePart(const char* text) : MessagePart(std::string_view(text)) {}
  template <std::same_as<char> T>
  MessagePart(T letter) : kind_(Kind::letter), letter_(letter) {}
  template <std::same_as<bool> T>  // only bool itself: pointers would convert to it
  MessagePart(T value) : kind_(Kind::truth), truth_(value) {}
  template <std::signed_integral T>
  requires(!std::same_as<T, char>) MessagePart(T value) : kind_(Kind::integer), integer_(value) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, char> && !std::same_as<T, bool>) MessagePart(T value)
      : kind_(Kind::natural), natural_(value) {}
  template <std::same_as<float> T>
  MessagePart(T value) : kind_(Kind::single), single_(value) {}
  template <std::same_as<double> T>
  MessagePart(T value) : kind_(Kind::twice), double_(value) {}

  void append_to(std::string& out) const;

 private:
  enum class Kind { text, letter, truth, integer, natural, single, twice };
  struct Text {
    const char* data;
    size_t size;
  };
  Kind kind_;
  union {
    Text text_;
    char letter_;
    bool truth_;
    int64_t integer_;
    uint64_t natural_;
    float single_;
    double double_;
  };
};

std::string joined_parts(std::initializer_list<MessagePart> parts);

// Joins strings and numbers. Floating-point numbers appear in their shortest exact form. Lists of
// types are as many as messages, so nothing but a call of joined_parts is compiled for each.
template <typename... Parts>
[[gnu::always_inline]] inline std::string cat(const Parts&... parts) {
  return joined_parts({MessagePart(parts)...});
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

// A share with two digits: "0.12 %" for 0.0012.
std::string percent_text(double share);

// Whether `bytes` is well-formed UTF-8 (no surrogates, no overlong forms). If `bad_at` is given, it
// receives the offset of the first bad byte.
bool is_utf8(std::string_view bytes, size_t* bad_at = nullptr);

// Compares versions as numbers: "0.27.1" is before "0.43". False if `version` is not a version.
// REQUIRES `bound` to be one.
bool version_before(const std::string& version, const std::string& bound);

}  // namespace fp8kv
