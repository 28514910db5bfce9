// Wraps sentences to a width, counted in characters.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace fp8kv {

constexpr size_t kUnlimitedWidth = std::numeric_limits<size_t>::max();
constexpr size_t kNarrowestText = 20;  // a narrower column of text is hard to read

// The number of terminal columns that UTF-8 text takes, estimated as its number of code points.
size_t width_of(const std::string& text);

// Splits a text into words at blanks.
std::vector<std::string> words_of(const std::string& text);

// Splits `text` into lines; joined with blanks, they give `text` again. A word wider than `width`
// stays whole.
std::vector<std::string> wrapped(const std::string& text, size_t width);

// Wraps a sentence if one of its lines is wider than `width`; else returns it unchanged. Wrapping
// replaces the old line ends. Continued lines are indented to the text behind the first `indent`
// characters. A word that is too wide stays whole.
std::string sentence_text(const std::string& sentence, size_t width, size_t indent);

// The number of columns of a terminal; kUnlimitedWidth if the descriptor is not a terminal.
size_t terminal_width(int descriptor);

}  // namespace fp8kv
