// Numbers as people read them: short, and "NaN" where there is none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fp8kv {

// To `digits` significant digits, as short as possible: "23.89", "0.00338".
std::string short_number(double value, int digits = 3);

// 0.0241 -> "2.41 %".
std::string short_percent(double share, int digits = 3);

// The same with its sign and its standard error: "+0.12 % ± 0.05 %".
std::string signed_percent(double share, double error);

// "3, 7–9 and 12". REQUIRES rising numbers.
std::string number_ranges(const std::vector<size_t>& numbers);

}  // namespace fp8kv
