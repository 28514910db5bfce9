// The upper case of every character by Python's rules. Made by scripts/make_upper_case.py.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "unicode/unicode_tables.h"

namespace fp8kv::unicode {

// Like kLowerRows, but from lower to upper case. Contains the characters whose title case equals
// their upper case, if that is a single character.
extern const std::span<const LowerRow> kUpperRows;

// All other characters with an upper case, in order.
struct OddCase {
  uint32_t c;
  std::string_view upper;
  std::string_view title;
};
extern const std::span<const OddCase> kOddCases;

}  // namespace fp8kv::unicode
