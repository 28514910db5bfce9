#include "jinja/values/text_tools.h"

#include "jinja/values/chars.h"
#include "jinja/values/runtime.h"
#include "jinja/values/text_search.h"
#include "unicode/characters.h"
#include "unicode/upper_case.h"

namespace fp8kv::jinja {
namespace {

constexpr size_t kSigmaBytes = 2;
constexpr char32_t kCapitalSigma = 0x3A3;

bool is_line_end(char32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_cased(char32_t c) {
  std::string low;
  std::string high;
  append_lower(low, c);
  append_upper(high, c);
  return low != high;
}

// Whether a sigma between these texts ends a word and so has another lower case (Final_Sigma).
bool is_final_sigma(std::string_view before, std::string_view after) {
  const auto skipped = [](char32_t c) {
    return is_combining_mark(c) || c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019;
  };
  while (!before.empty() && skipped(last_char(before))) {
    std::string last;
    append_char(last, last_char(before));
    before.remove_suffix(last.size());
  }
  if (before.empty() || !is_cased(last_char(before))) return false;
  for (size_t at = 0; at < after.size();) {
    const char32_t c = next_char(after, at);
    if (!skipped(c)) return !is_cased(c);
  }
  return true;
}

}  // namespace

MarkedText changed_chars(Runtime& runtime, const MarkedText& text,
                         const std::function<void(std::string&, char32_t)>& change) {
  runtime.spend_bytes(text.size());
  MarkedText out;
  text.for_each_run(0, text.size(), [&](std::string_view bytes, Origin origin) {
    std::string made;
    for (size_t at = 0; at < bytes.size();) change(made, next_char(bytes, at));
    out.append(made, origin);
  });
  return out;
}

MarkedText lower(Runtime& runtime, const MarkedText& text) {
  const std::string_view all = text.bytes();
  size_t at = 0;
  return changed_chars(runtime, text, [&](std::string& out, char32_t c) {
    const size_t begin = at;
    next_char(all, at);
    const bool is_final =
        c == kCapitalSigma && is_final_sigma(all.substr(0, begin), all.substr(begin + kSigmaBytes));
    is_final ? append_char(out, 0x3C2) : append_lower(out, c);
  });
}

MarkedText upper(Runtime& runtime, const MarkedText& text) {
  return changed_chars(runtime, text, [](std::string& out, char32_t c) { append_upper(out, c); });
}

MarkedText capitalized(Runtime& runtime, const MarkedText& text) {
  if (text.empty()) return text;
  const size_t first = byte_of_char(text.bytes(), 0, 1);
  MarkedText out = changed_chars(runtime, text.part(0, first),
                                 [](std::string& made, char32_t c) { append_title(made, c); });
  // Lowers the whole text, because the text before a sigma matters.
  const MarkedText low = lower(runtime, text);
  const MarkedText low_first = lower(runtime, text.part(0, first));
  out.append(low, low_first.size(), low.size());
  return out;
}

MarkedText stripped(Runtime& runtime, const MarkedText& text, const std::string* chars, Side side) {
  runtime.spend_bytes(text.size());
  const std::string_view bytes = text.bytes();
  const auto goes = [&](std::string_view one) {
    if (chars != nullptr) {
      runtime.spend(1 + chars->size() / 64);
      return chars->find(one) != std::string::npos;
    }
    size_t at = 0;
    return is_python_space(next_char(one, at));
  };
  size_t begin = 0;
  size_t end = bytes.size();
  while (side != Side::right && begin < end) {
    const size_t next = byte_of_char(bytes, begin, 1);
    if (!goes(bytes.substr(begin, next - begin))) break;
    begin = next;
  }
  while (side != Side::left && begin < end) {
    size_t last = end - 1;
    while ((static_cast<unsigned char>(bytes[last]) & 0xC0) == 0x80) --last;
    if (!goes(bytes.substr(last, end - last))) break;
    end = last;
  }
  return text.part(begin, end);
}

MarkedText replaced(Runtime& runtime, const MarkedText& text, const MarkedText& old,
                    const MarkedText& by, int64_t most) {
  const std::string& bytes = text.bytes();
  const TextSearch search(runtime, bytes, old.bytes());
  MarkedText out;
  size_t done = 0;
  for (size_t at = 0; most != 0; --most) {
    const size_t found = search.find(at);
    if (found == std::string::npos) break;
    runtime.spend(1 + by.size() / 16);
    out.append(text, done, found);
    out.append(by);
    runtime.check_size(out.size());
    done = found + old.size();
    // An empty `old` is found before each character, and once at the end.
    if (old.empty() && found == bytes.size()) break;
    at = old.empty() ? byte_of_char(bytes, found, 1) : done;
  }
  out.append(text, done, text.size());
  return out;
}

std::vector<MarkedText> lines_of(Runtime& runtime, const MarkedText& text, bool keep_ends) {
  runtime.spend_bytes(text.size());
  const std::string_view bytes = text.bytes();
  std::vector<MarkedText> lines;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = at;
    const char32_t c = next_char(bytes, at);
    if (!is_line_end(c)) continue;
    if (c == '\r' && at < bytes.size() && bytes[at] == '\n') ++at;
    runtime.spend(8);
    lines.push_back(text.part(begin, keep_ends ? at : end));
    begin = at;
  }
  if (begin < bytes.size()) lines.push_back(text.part(begin, bytes.size()));
  return lines;
}

MarkedText centered(Runtime& runtime, const MarkedText& text, int64_t width) {
  const auto chars = static_cast<int64_t>(char_count(text.bytes()));
  if (width <= chars) return text;
  const auto missing = static_cast<size_t>(width - chars);
  runtime.spend_bytes(text.size() + missing);
  // Follows Python's rounding.
  const size_t before = missing / 2 + (missing & static_cast<size_t>(width) & 1);
  MarkedText out(std::string(before, ' '), Origin::from_template);
  out.append(text);
  out.append(std::string(missing - before, ' '), Origin::from_template);
  return out;
}

}  // namespace fp8kv::jinja
