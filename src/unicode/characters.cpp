#include "unicode/characters.h"

#include <algorithm>

#include "unicode/unicode_tables.h"

namespace fp8kv {

char32_t next_char(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    at += 1;
    return lead;
  }
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t c = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) c = (c << 6) | (byte(i) & 0x3Fu);
  at += length;
  return c;
}

char32_t last_char(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return next_char(text, at);
}

void append_char(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int tails = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static constexpr unsigned char kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[tails] | (c >> (6 * tails)));
  for (int i = tails - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F));
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return unicode::value_in(unicode::kNumericRuns, c) != 0;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) ||
           (c >= 0x7B && c <= 0x7E);
  }
  return unicode::value_in(unicode::kPunctuationRuns, c) != 0;
}

bool is_combining_mark(char32_t c) {
  if (c < 0x300) return false;
  return unicode::value_in(unicode::kMarkRuns, c) != 0;
}

bool is_word(char32_t c) {
  if (c < 128) return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
  const std::string_view category =
      unicode::kCategoryNames[unicode::value_in(unicode::kCategoryRuns, c)];
  return unicode::value_in(unicode::kAlphabeticRuns, c) != 0 || category[0] == 'M' ||
         category == "Nd" || category == "Pc" || c == 0x200C || c == 0x200D;
}

void append_lower(std::string& out, char32_t c) {
  // The one character whose lower case always has two characters (SpecialCasing.txt).
  if (c == 0x130) {
    out += "i\xCC\x87";
    return;
  }
  const auto rows = unicode::kLowerRows;
  const auto after = std::upper_bound(rows.begin(), rows.end(), c,
                                      [](char32_t a, const auto& row) { return a < row.first; });
  if (after != rows.begin()) {
    const unicode::LowerRow& row = *std::prev(after);
    if (c <= row.last && (c - row.first) % row.step == 0) {
      c = static_cast<char32_t>(static_cast<int32_t>(c) + row.delta);
    }
  }
  append_char(out, c);
}

uint8_t unicode::value_in(Runs runs, char32_t c) {
  const auto after = std::upper_bound(runs.begin(), runs.end(), c << 8 | 0xFF);
  return static_cast<uint8_t>(*std::prev(after) & 0xFF);
}

Utf8Front utf8_front(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, 0, false};
  if (lead < 0xC2 || lead > 0xF4) return {0, 1, false};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // After some lead bytes the second byte has a narrower range. This rules out overlong forms,
  // surrogates and code points past U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {0, i, true};
    const bool fits = i == 1 ? byte(1) >= low && byte(1) <= high : (byte(i) & 0xC0) == 0x80;
    if (!fits) return {0, i, false};
  }
  return {length, 0, false};
}

namespace {

ByteAlphabet make_byte_alphabet() {
  ByteAlphabet alphabet;
  alphabet.to_byte.fill(-1);
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const char32_t c = printable ? byte : next++;
    alphabet.of_byte[byte] = c;
    alphabet.to_byte[c] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

}  // namespace

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet = make_byte_alphabet();
  return alphabet;
}

void append_byte_spelling(std::string& out, std::string_view bytes) {
  const ByteAlphabet& alphabet = byte_alphabet();
  for (const char byte : bytes)
    append_char(out, alphabet.of_byte[static_cast<unsigned char>(byte)]);
}

}  // namespace fp8kv
