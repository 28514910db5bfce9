// Colour in a terminal, for text that is laid out already: bars, and words of verdicts.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv {

// The same text with the escapes of a terminal around bars and around what verdicts say: green for
// what is safe, yellow for what needs a scale, red for what is lost, magenta for what is not known.
std::string coloured(std::string_view text);

// Whether standard output is a terminal that has colours, and NO_COLOR (https://no-color.org) does
// not say otherwise. A TERM that is "dumb", or none at all, has none.
bool wants_colour();

// Writes `text` as print_text() does, in colour where that is wanted.
void show(std::string_view text);

}  // namespace fp8kv
