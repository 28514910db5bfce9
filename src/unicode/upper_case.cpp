#include "unicode/upper_case.h"

#include <algorithm>

#include "unicode/characters.h"
#include "unicode/upper_case_tables.h"

namespace fp8kv {
namespace {

const unicode::OddCase* odd_case(char32_t c) {
  const auto rows = unicode::kOddCases;
  const auto at = std::lower_bound(rows.begin(), rows.end(), c,
                                   [](const auto& row, char32_t key) { return row.c < key; });
  return at != rows.end() && at->c == c ? &*at : nullptr;
}

char32_t single_upper(char32_t c) {
  const auto rows = unicode::kUpperRows;
  const auto after = std::upper_bound(rows.begin(), rows.end(), c,
                                      [](char32_t a, const auto& row) { return a < row.first; });
  if (after == rows.begin()) return c;
  const unicode::LowerRow& row = *std::prev(after);
  if (c > row.last || (c - row.first) % row.step != 0) return c;
  return static_cast<char32_t>(static_cast<int32_t>(c) + row.delta);
}

}  // namespace

void append_upper(std::string& out, char32_t c) {
  const unicode::OddCase* odd = odd_case(c);
  odd ? void(out += odd->upper) : append_char(out, single_upper(c));
}

void append_title(std::string& out, char32_t c) {
  const unicode::OddCase* odd = odd_case(c);
  odd ? void(out += odd->title) : append_char(out, single_upper(c));
}

}  // namespace fp8kv
