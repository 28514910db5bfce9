// Upper case of every character, as Python has it. Made by scripts/make_upper_case.py.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "unicode/unicode_tables.h"

namespace fp8kv::unicode {

// As kLowerRows, the other way: those whose title case is their upper case, one character.
extern const std::span<const LowerRow> kUpperRows;

// All others, in order.
struct OddCase {
  uint32_t c;
  std::string_view upper;
  std::string_view title;
};
extern const std::span<const OddCase> kOddCases;

}  // namespace fp8kv::unicode
