// The style of a page, and its only script: a click sorts a table.
#pragma once

#include <string_view>

namespace fp8kv {

// Colours s0 to s7 differ with every kind of colour vision (tests/draw/test_colours.cpp). Without
// colour, markers and dashes differ.
inline constexpr int kSeriesStyles = 8;

std::string_view page_style();
std::string_view page_script();

}  // namespace fp8kv
