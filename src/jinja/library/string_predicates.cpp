#include "jinja/library/string_predicates.h"

#include <algorithm>

#include "jinja/values/chars.h"
#include "jinja/values/text_tools.h"
#include "unicode/characters.h"
#include "unicode/unicode_tables.h"

namespace fp8kv::jinja {
namespace {

const MarkedText& self_of(const Call& call) {
  return *call.self.string();
}

// Whether the text is not empty and all characters satisfy `is`.
template <typename Is>
Value all_chars(Call& call, const Is& is) {
  const std::string& text = self_of(call).bytes();
  call.runtime.spend_bytes(text.size());
  for (size_t at = 0; at < text.size();) {
    if (!is(next_char(text, at))) return Value(false);
  }
  return Value(!text.empty());
}

std::string_view category_of(char32_t c) {
  return unicode::kCategoryNames[unicode::value_in(unicode::kCategoryRuns, c)];
}
bool is_letter(char32_t c) {
  return category_of(c)[0] == 'L';
}
bool is_decimal(char32_t c) {
  return category_of(c) == "Nd";
}

// Whether at least one letter has a case, and all cased letters have the wanted one.
bool is_in_case(Call& call, const MarkedText& same, const MarkedText& other) {
  return same.bytes() == self_of(call).bytes() && other.bytes() != self_of(call).bytes();
}
}  // namespace

Value isspace(Call& call) {
  return all_chars(call, is_python_space);
}
Value isalpha(Call& call) {
  return all_chars(call, is_letter);
}
Value isdecimal(Call& call) {
  return all_chars(call, is_decimal);
}
// Python's isdigit also accepts superscripts and other Unicode digits, which are not supported.
Value isdigit(Call& call) {
  return all_chars(call, [&](char32_t c) {
    if (c >= 0x80 && !is_decimal(c) && is_numeric(c)) {
      call.runtime.fail("isdigit is not supported for such characters");
    }
    return is_decimal(c);
  });
}
Value isalnum(Call& call) {
  return all_chars(call, [](char32_t c) { return is_letter(c) || is_numeric(c); });
}
Value isascii(Call& call) {
  const std::string& text = self_of(call).bytes();
  call.runtime.spend_bytes(text.size());
  return Value(std::none_of(text.begin(), text.end(),
                            [](char c) { return static_cast<unsigned char>(c) >= 0x80; }));
}

Value islower(Call& call) {
  return Value(
      is_in_case(call, lower(call.runtime, self_of(call)), upper(call.runtime, self_of(call))));
}
Value isupper(Call& call) {
  return Value(
      is_in_case(call, upper(call.runtime, self_of(call)), lower(call.runtime, self_of(call))));
}

}  // namespace fp8kv::jinja
