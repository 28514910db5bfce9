// Characters and their properties, normal forms, and the byte alphabet of byte-level tokenizers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fp8kv {

// Returns the code point at `at` of valid UTF-8 `text`, and moves `at` past it. REQUIRES at <
// text.size().
char32_t next_char(std::string_view text, size_t& at);

// The last code point of valid, non-empty UTF-8.
char32_t last_char(std::string_view text);

void append_char(std::string& out, char32_t c);

bool is_white_space(char32_t c);     // Unicode's White_Space
bool is_numeric(char32_t c);         // categories Nd, Nl, No
bool is_punctuation(char32_t c);     // categories P*, and every ASCII punctuation character
bool is_combining_mark(char32_t c);  // categories M*
bool is_word(char32_t c);            // \w of Rust: Alphabetic, M*, Nd, Pc, and the two joiners
void append_lower(std::string& out, char32_t c);  // the full mapping, independent of context

// The well-formed UTF-8 sequence at the front of a text. `length` is 0 if there is none. Then
// `prefix_of_valid` says whether more bytes could complete a sequence. `bad` is the number of bytes
// that one U+FFFD replaces: the longest prefix of a valid sequence, else one byte.
struct Utf8Front {
  size_t length = 0;
  size_t bad = 0;
  bool prefix_of_valid = false;
};
Utf8Front utf8_front(std::string_view bytes);

// Byte-level tokenizers spell each byte as a printable character: 0x20 as U+0120, for example.
struct ByteAlphabet {
  static constexpr char32_t kEnd = 0x144;  // past the last character of the alphabet
  std::array<char32_t, 256> of_byte;
  std::array<int16_t, kEnd> to_byte;  // -1 for characters outside of the alphabet
};
const ByteAlphabet& byte_alphabet();
void append_byte_spelling(std::string& out, std::string_view bytes);

}  // namespace fp8kv
