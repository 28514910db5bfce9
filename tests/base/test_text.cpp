#include <bit>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "base/text.h"

namespace fp8kv {
namespace {

// Decodes and checks values by the definition of UTF-8, without tables of byte ranges.
bool slow_is_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    const int ones = std::countl_one(lead);
    if (ones == 1 || ones > 4) return false;
    const size_t length = ones == 0 ? 1 : static_cast<size_t>(ones);
    if (i + length > bytes.size()) return false;
    uint32_t value = ones == 0 ? lead : lead & (0xFFu >> (ones + 1));
    for (size_t k = 1; k < length; ++k) {
      const auto tail = static_cast<unsigned char>(bytes[i + k]);
      if (std::countl_one(tail) != 1) return false;
      value = value << 6 | (tail & 0x3Fu);
    }
    const size_t shortest = value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
    if (length != shortest || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return false;
    i += length;
  }
  return true;
}

TEST_CASE("is_utf8: agrees with decoding for every sequence of up to three bytes") {
  size_t wrong = 0;
  for (uint32_t value = 0; value < (1u << 24); ++value) {
    const char bytes[] = {static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                          static_cast<char>(value)};
    const std::string_view text(bytes, 3);
    wrong += is_utf8(text) != slow_is_utf8(text);
    if (value < 0x10000) wrong += is_utf8(text.substr(1)) != slow_is_utf8(text.substr(1));
    if (value < 0x100) wrong += is_utf8(text.substr(2)) != slow_is_utf8(text.substr(2));
  }
  CHECK(wrong == 0);
}

TEST_CASE("is_utf8: agrees with decoding for sequences of four bytes at all edges") {
  const std::vector<int> edges{0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1,
                               0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
  size_t wrong = 0;
  for (const int a : edges) {
    for (const int b : edges) {
      for (const int c : edges) {
        for (const int d : edges) {
          const char bytes[] = {char(a), char(b), char(c), char(d)};
          wrong += is_utf8({bytes, 4}) != slow_is_utf8({bytes, 4});
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("is_utf8: says where the first bad byte is") {
  size_t at = 99;
  CHECK_FALSE(is_utf8("aé\xE2\x82", &at));
  CHECK(at == 3);
  CHECK_FALSE(is_utf8("\x80", &at));
  CHECK(at == 0);
  at = 99;
  CHECK(is_utf8("aé€😀", &at));
  CHECK(at == 99);
}

TEST_CASE("quote: escapes what could harm a terminal or hide in a line") {
  CHECK(quote("a b/é€") == "'a b/é€'");
  CHECK(quote("") == "''");
  CHECK(quote("it's\\n") == "'it\\'s\\\\n'");
  CHECK(quote(std::string_view("\0\n\x1B[31m\x7F", 8)) == "'\\x00\\x0a\\x1b[31m\\x7f'");
  CHECK(quote("\xC2\x9B"
              "x") == "'\\xc2\\x9bx'");
  CHECK(quote("a\xFF\xE2\x82") == "'a\\xff\\xe2\\x82'");
  CHECK(plain("a\xFF") == "a\\xff");
  CHECK(utf8_name("a\xFF") == "a\\xff");
  CHECK(utf8_name("it's") == "it's");
  CHECK(quote("\u202Eabc\u2066\u200F") == "'\\xe2\\x80\\xaeabc\\xe2\\x81\\xa6\\xe2\\x80\\x8f'");
}

TEST_CASE("quote: cuts long names and stays UTF-8") {
  const std::string long_name(1000, 'x');
  CHECK(quote(long_name) == "'" + std::string(200, 'x') + "...'");
  CHECK(quote(std::string(200, 'x')) == "'" + std::string(200, 'x') + "'");
  std::string accents;
  for (int i = 0; i < 300; ++i) accents += "é";
  CHECK(is_utf8(quote(accents)));
  CHECK(quote(accents).size() < 220);
}

TEST_CASE("nearest: finds what was meant, and nothing where nothing is near") {
  const std::vector<std::string> names{"calibrate", "inject", "extract", "run", "inspect"};
  CHECK(nearest("calibarte", names) == "calibrate");
  CHECK(nearest("inspct", names) == "inspect");
  CHECK(nearest("rnu", names) == "");
  CHECK(nearest("ru", names) == "run");
  CHECK(nearest("quantise", names) == "");
  CHECK(nearest("", names) == "");
  CHECK(nearest("x", std::vector<std::string>{}) == "");
  CHECK(did_you_mean("injct", names) == " (did you mean 'inject'?)");
  CHECK(did_you_mean("zzzz", names) == "");
}

TEST_CASE("human_bytes: has three digits and the unit that fits") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1) == "1 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.00 KiB");
  CHECK(human_bytes(1536) == "1.50 KiB");
  CHECK(human_bytes(10 << 10) == "10.0 KiB");
  CHECK(human_bytes((1 << 20) - 1) == "1.00 MiB");
  CHECK(human_bytes(uint64_t{5} << 30) == "5.00 GiB");
  CHECK(human_bytes(UINT64_MAX) == "16.0 EiB");
}

TEST_CASE("numbers in messages: grouped, counted, joined, exact") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(UINT64_MAX) == "18,446,744,073,709,551,615");
  CHECK(count_of(1, "file") == "1 file");
  CHECK(count_of(0, "file") == "0 files");
  CHECK(count_of(1234, "file") == "1,234 files");
  const std::vector<std::string> items{"a", "b", "c"};
  CHECK(join(items) == "a, b and c");
  CHECK(join(std::span(items).first(2), " or ") == "a or b");
  CHECK(join(std::span(items).first(1)) == "a");
  CHECK(join({}) == "");
  CHECK(cat("x", 1, 'c', true, 0.1f, -2.5, uint8_t{7}) == "x1ctrue0.1-2.57");
  CHECK(fixed(2.345, 1) == "2.3");
}

}  // namespace
}  // namespace fp8kv
