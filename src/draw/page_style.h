// What a page looks like, and the one thing it does if scripts run: tables sort by a click.
#pragma once

#include <string_view>

namespace fp8kv {

// Colours s0 to s5 are those of Okabe and Ito, told apart with every kind of colour vision
// (https://jfly.uni-koeln.de/color); markers and dashes tell them apart without colour.
inline constexpr int kSeriesStyles = 6;

std::string_view page_style();
std::string_view page_script();

}  // namespace fp8kv
