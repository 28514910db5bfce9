// Formats numbers for people: short, and "NaN" for NaN.
#pragma once

#include <string>

namespace fp8kv {

// Rounds to `digits` significant digits, without trailing zeros: "23.89", "0.00338", "1200".
// Outside of 10^-5 to 10^6: "4.7×10⁻⁶" and "10⁹".
std::string short_number(double value, int digits = 3);

// 0.0241 -> "2.41 %".
std::string short_percent(double share, int digits = 3);

// A percentage with sign and standard error: "+0.12 % ± 0.05 %".
std::string signed_percent(double share, double error);

// -9 -> "⁻⁹".
std::string superscript(int number);

}  // namespace fp8kv
