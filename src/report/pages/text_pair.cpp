#include "report/pages/text_pair.h"

#include <algorithm>

#include "base/text.h"
#include "draw/html.h"

namespace fp8kv {
namespace {

// Bytes that are shown of a text before and behind the place where it parts.
constexpr size_t kBytesBefore = 240;
constexpr size_t kBytesBehind = 600;
constexpr size_t kMarkedBytes = 24;

bool inside_character(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

// The largest place up to `at` where a character begins.
size_t character_begin(std::string_view text, size_t at) {
  at = std::min(at, text.size());
  while (at > 0 && inside_character(text, at)) --at;
  return at;
}

// Escapes a text and keeps its line ends.
std::string escaped_lines(std::string_view text) {
  std::string out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += escape_html(text.substr(at, end - at));
    if (end < text.size()) out += "\n";
    at = end + 1;
  }
  return out;
}

// The length of the first word, or of a few blanks and a word.
size_t first_word(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \n\t\r"), text.size());
  const size_t end = std::min(text.find_first_of(" \n\t\r", begin), text.size());
  return character_begin(text, std::min(end, kMarkedBytes));
}

}  // namespace

size_t parting_place(std::string_view a, std::string_view b) {
  const auto parted = std::ranges::mismatch(a, b);
  size_t place = static_cast<size_t>(parted.in1 - a.begin());
  while (place > 0 && (inside_character(a, place) || inside_character(b, place))) --place;
  return place;
}

std::string parted_text(std::string_view text, size_t place) {
  const size_t from = character_begin(text, place > kBytesBefore ? place - kBytesBefore : 0);
  const std::string_view rest = text.substr(place);
  const size_t word = first_word(rest);
  const std::string common =
      cat(from > 0 ? "… " : "", escaped_lines(text.substr(from, place - from)));
  const std::string marked = rest.empty()
                                 ? element("mark", "class=\"end\"", "ends here")
                                 : element("mark", "", escaped_lines(rest.substr(0, word)));
  return element("span", "class=\"common\"", common) + marked +
         escaped_lines(cut_text(rest.substr(word), kBytesBehind));
}

std::string cut_text(std::string_view text, size_t most) {
  const size_t end = character_begin(text, most);
  return cat(text.substr(0, end), end < text.size() ? " …" : "");
}

}  // namespace fp8kv
