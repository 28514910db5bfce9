// Sentences in lines of a width, in characters.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace fp8kv {

constexpr size_t kUnlimitedWidth = std::numeric_limits<size_t>::max();
constexpr size_t kNarrowestText = 20;  // a column of text with less is hard to read

// Columns that UTF-8 text takes on a terminal, near enough: its code points.
size_t width_of(const std::string& text);

// The words of a text, apart at blanks.
std::vector<std::string> words_of(const std::string& text);

// Lines that are `text` again when put together with a blank between them. A word that is wider
// than `width` stays whole.
std::vector<std::string> wrapped(const std::string& text, size_t width);

// A sentence as it is, or if a line of it is wider than `width`, broken at blanks instead of where
// it was. What goes on stands below the text that follows the first `indent` characters. A word
// that is wider stays whole.
std::string sentence_text(const std::string& sentence, size_t width, size_t indent);

// The columns of a terminal; kUnlimitedWidth where the descriptor is none.
size_t terminal_width(int descriptor);

}  // namespace fp8kv
