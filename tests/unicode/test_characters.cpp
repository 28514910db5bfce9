#include <doctest/doctest.h>

#include "base/digest.h"
#include "base/rng.h"
#include "base/text.h"
#include "json/json.h"
#include "support/places.h"
#include "text/steps/pattern.h"
#include "unicode/characters.h"
#include "unicode/normal_form.h"

namespace fp8kv {
namespace {

std::string utf8(char32_t c) {
  std::string text;
  append_char(text, c);
  return text;
}

std::string formed(std::string_view text, NormalForm form) {
  std::string buffer;
  return std::string(normal_form(text, form, buffer));
}

TEST_CASE("unicode: every character goes to UTF-8 and back") {
  size_t wrong = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string text = utf8(c);
    size_t at = 0;
    wrong += !is_utf8(text) || next_char(text, at) != c || at != text.size() ||
             last_char("é" + text) != c;
  }
  CHECK(wrong == 0);
}

std::vector<char32_t> all_characters() {
  std::vector<char32_t> all;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c < 0xD800 || c > 0xDFFF) all.push_back(c);
  }
  return all;
}

std::string sha256_hex(std::string_view text) {
  Sha256 digest;
  digest.add(text);
  return digest.hex();
}

// Digests of the tokenizers library's character properties, over all characters.
Json library_digests() {
  return Json::read(test::source_dir() / "tests/golden/unicode-digests.json");
}

constexpr std::pair<const char*, NormalForm> kForms[] = {{"NFC", NormalForm::nfc},
                                                         {"NFD", NormalForm::nfd},
                                                         {"NFKC", NormalForm::nfkc},
                                                         {"NFKD", NormalForm::nfkd}};

TEST_CASE("unicode: sets of characters in patterns are the library's, for every character") {
  // Goes in blocks. Some have characters that PCRE2 classifies differently, most have none.
  constexpr size_t kBlock = 1024;
  const std::vector<char32_t> all = all_characters();
  const Json classes = library_digests().at("classes");
  REQUIRE(classes.size() > 30);
  for (size_t i = 0; i < classes.size(); ++i) {
    const std::string items(classes.key(i));
    CAPTURE(items);
    const Pattern pattern = Pattern::from_regex("[" + items + "]+", "test");
    PatternScratch scratch;
    std::string bits;
    for (size_t begin = 0; begin < all.size(); begin += kBlock) {
      std::string text;
      for (size_t k = 0; k < kBlock; ++k) append_char(text, all[begin + k]);
      size_t at = 0;
      pattern.for_each(text, scratch, [&](const Pattern::Match& match) {
        for (; at < match.begin; bits += '0') (void)next_char(text, at);
        for (; at < match.end; bits += '1') (void)next_char(text, at);
      });
      bits.resize(begin + kBlock, '0');
    }
    CHECK(sha256_hex(bits) == classes.value(i).as_string());
  }
}

TEST_CASE("unicode: properties are the library's, for every character") {
  const Json properties = library_digests().at("properties");
  const std::pair<const char*, bool (*)(char32_t)> cases[] = {{"numeric", is_numeric},
                                                              {"punctuation", is_punctuation},
                                                              {"white_space", is_white_space},
                                                              {"word", is_word},
                                                              {"mark", is_combining_mark}};
  CHECK(properties.size() == std::size(cases));
  for (const auto& [name, has] : cases) {
    std::string bits;
    for (const char32_t c : all_characters()) bits += has(c) ? '1' : '0';
    CAPTURE(name);
    CHECK(sha256_hex(bits) == properties.at(name).as_string());
  }
}

TEST_CASE("unicode: normal forms and lower case are the library's, for every character") {
  const Json changes = library_digests().at("changes");
  std::string lower;
  for (const char32_t c : all_characters()) {
    append_lower(lower, c);
    lower += '\n';
  }
  CHECK(sha256_hex(lower) == changes.at("Lowercase").as_string());
  for (const auto& [name, form] : kForms) {
    std::string lines;
    for (const char32_t c : all_characters()) lines += formed(utf8(c), form) + "\n";
    CAPTURE(name);
    CHECK(sha256_hex(lines) == changes.at(name).as_string());
  }
}

TEST_CASE("unicode: normal forms of all texts of three pieces are the library's") {
  const Json file = library_digests();
  const Json list = file.at("pieces");
  std::vector<std::string> pieces;
  for (size_t i = 0; i < list.size(); ++i) pieces.push_back(list[i].as_string());
  for (const auto& [name, form] : kForms) {
    std::string lines;
    for (const std::string& a : pieces) {
      for (const std::string& b : pieces) {
        for (const std::string& c : pieces) lines += formed(a + b + c, form) + "\n";
      }
    }
    CAPTURE(name);
    CHECK(sha256_hex(lines) == file.at("joined").at(name).as_string());
  }
}

TEST_CASE("unicode: a long row of marks is sorted in no time") {
  // 2 x 10^5 marks of alternating classes. A quadratic step would take minutes.
  std::string text = "a";
  for (int i = 0; i < 100000; ++i) text += "\u0301\u0323";
  const std::string made = formed(text, NormalForm::nfc);
  CHECK(made.starts_with("\u1EA1\u0323\u0323"));
  CHECK(made.ends_with("\u0301\u0301"));
  CHECK(made.size() == text.size());
}

TEST_CASE("unicode: normal forms of the examples of UAX 15") {
  CHECK(formed("Å", NormalForm::nfd) == "A\u030A");
  CHECK(formed("A\u030A", NormalForm::nfc) == "Å");
  CHECK(formed("\u212B", NormalForm::nfc) == "Å");
  CHECK(formed("\u1E9B\u0323", NormalForm::nfc) == "\u1E9B\u0323");
  CHECK(formed("\u1E9B\u0323", NormalForm::nfd) == "\u017F\u0323\u0307");
  CHECK(formed("\u1E9B\u0323", NormalForm::nfkc) == "\u1E69");
  CHECK(formed("\u1E9B\u0323", NormalForm::nfkd) == "s\u0323\u0307");
  CHECK(formed("ﬁ①", NormalForm::nfkc) == "fi1");
  CHECK(formed("ﬁ①", NormalForm::nfc) == "ﬁ①");
  CHECK(formed("\u1100\u1161\u11A8", NormalForm::nfc) == "각");
}

TEST_CASE("unicode: a text is normalised as a whole, wherever plain characters part it") {
  // Only stretches with other than plain characters are normalised. If a stretch were cut in the
  // wrong place, going through the other form of the same kind would give another result.
  const char32_t characters[] = {'a',    'q',    ' ',    0xE9,   0xC5,   0x300,
                                 0x301,  0x323,  0x345,  0x1100, 0x1161, 0x11A8,
                                 0x212B, 0xFB01, 0x3042, 0x3099, 0x2F8};
  Rng rng(5);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (uint64_t n = rng.next() % 9; n > 0; --n) {
      append_char(text, characters[rng.next() % std::size(characters)]);
    }
    for (const NormalForm form :
         {NormalForm::nfc, NormalForm::nfd, NormalForm::nfkc, NormalForm::nfkd}) {
      const std::string once = formed(text, form);
      CHECK(formed(once, form) == once);
      const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
      const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
      const NormalForm other = compatible ? (composed ? NormalForm::nfkd : NormalForm::nfkc)
                                          : (composed ? NormalForm::nfd : NormalForm::nfc);
      CHECK(formed(formed(text, other), form) == once);
    }
  }
}

TEST_CASE("unicode: text that is in the form already is not copied") {
  const std::string text = "plain ASCII, and é too";
  std::string buffer;
  CHECK(normal_form(text, NormalForm::nfc, buffer).data() == text.data());
  CHECK(normal_form("", NormalForm::nfkd, buffer).empty());
}

TEST_CASE("unicode: properties at the edges") {
  for (const char32_t c : {0x09, 0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2000, 0x200A, 0x2029, 0x3000}) {
    CHECK(is_white_space(c));
  }
  for (const char32_t c : {0x08, 0x0E, 0x1F, 0x84, 0x180E, 0x200B, 0x2060, 0xFEFF}) {
    CHECK_FALSE(is_white_space(c));
  }
  CHECK(is_numeric(U'7'));
  CHECK(is_numeric(U'½'));
  CHECK(is_numeric(U'Ⅷ'));
  CHECK_FALSE(is_numeric(U'七'));
  CHECK(is_punctuation(U'$'));  // ASCII: symbols count
  CHECK(is_punctuation(U'。'));
  CHECK_FALSE(is_punctuation(U'€'));
  CHECK(is_combining_mark(0x301));
  CHECK_FALSE(is_combining_mark(U'´'));
  std::string lower;
  for (const char32_t c : U"İÀΣß") {
    if (c) append_lower(lower, c);
  }
  CHECK(lower == "i\u0307àσß");
}

// The well-formed sequences by Table 3-7 of the standard, as pairs of bounds for each byte.
bool follows_table(std::string_view bytes) {
  struct Row {
    unsigned char low[4];
    unsigned char high[4];
    size_t length;
  };
  static constexpr Row kRows[] = {
      {{0x00}, {0x7F}, 1},
      {{0xC2, 0x80}, {0xDF, 0xBF}, 2},
      {{0xE0, 0xA0, 0x80}, {0xE0, 0xBF, 0xBF}, 3},
      {{0xE1, 0x80, 0x80}, {0xEC, 0xBF, 0xBF}, 3},
      {{0xED, 0x80, 0x80}, {0xED, 0x9F, 0xBF}, 3},
      {{0xEE, 0x80, 0x80}, {0xEF, 0xBF, 0xBF}, 3},
      {{0xF0, 0x90, 0x80, 0x80}, {0xF0, 0xBF, 0xBF, 0xBF}, 4},
      {{0xF1, 0x80, 0x80, 0x80}, {0xF3, 0xBF, 0xBF, 0xBF}, 4},
      {{0xF4, 0x80, 0x80, 0x80}, {0xF4, 0x8F, 0xBF, 0xBF}, 4},
  };
  for (const Row& row : kRows) {
    bool fits = row.length >= bytes.size();  // a prefix of it will do
    for (size_t i = 0; fits && i < bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      fits = byte >= row.low[i] && byte <= row.high[i];
    }
    if (fits) return true;
  }
  return false;
}

TEST_CASE("utf8_front: finds the characters and the maximal broken parts, as the table says") {
  size_t wrong = 0;
  for (unsigned value = 0; value < 0x1000000; value += 7) {  // three bytes, and "A" after them
    const std::string bytes{static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                            static_cast<char>(value), 'A'};
    const Utf8Front front = utf8_front(bytes);
    size_t longest = 0;  // length of the longest prefix of any character
    while (longest < 4 && follows_table(bytes.substr(0, longest + 1))) ++longest;
    if (is_utf8(bytes.substr(0, 1)) || (longest > 1 && is_utf8(bytes.substr(0, longest)))) {
      wrong += front.length != (is_utf8(bytes.substr(0, 1)) ? 1 : longest);
    } else {
      wrong +=
          front.length != 0 || front.bad != std::max<size_t>(1, longest) || front.prefix_of_valid;
    }
    const Utf8Front half = utf8_front(std::string_view(bytes).substr(0, 2));
    const bool open = half.length == 0 && follows_table(bytes.substr(0, 2));
    wrong += half.prefix_of_valid != open;
  }
  CHECK(wrong == 0);
}

TEST_CASE("byte alphabet: is the one of GPT-2") {
  std::string spelled;
  append_byte_spelling(spelled, std::string_view("\0 \n!~\x7F\xA0\xA1\xAC\xAD\xAE\xFF", 12));
  CHECK(spelled == "ĀĠĊ!~ġł¡¬Ń®ÿ");
  for (unsigned byte = 0; byte < 256; ++byte) {
    CHECK(byte_alphabet().to_byte[byte_alphabet().of_byte[byte]] == static_cast<int>(byte));
  }
}

}  // namespace
}  // namespace fp8kv
