// Colours for laid-out terminal text: bars, and the words of verdicts.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv {

// Adds colour escapes around bars and words of verdicts. Green is safe, yellow needs a scale, red
// is lost, magenta is unknown.
std::string coloured(std::string_view text);

// Whether standard output is a terminal with colours. NO_COLOR (https://no-color.org), TERM=dumb
// and a missing TERM turn colours off.
bool wants_colour();

// Writes `text` like print_text(), in colour if wants_colour().
void show(std::string_view text);

}  // namespace fp8kv
