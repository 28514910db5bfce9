// What a page looks like, and the one thing it does if scripts run: tables sort by a click.
#pragma once

#include <string_view>

namespace fp8kv {

// Colours s0 to s7 are told apart with every kind of colour vision (tests/draw/test_colours.cpp);
// markers and dashes tell them apart without colour.
inline constexpr int kSeriesStyles = 8;

std::string_view page_style();
std::string_view page_script();

}  // namespace fp8kv
