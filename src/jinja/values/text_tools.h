// Helpers shared by filters and methods of strings.
#pragma once

#include <functional>
#include <string>

#include "jinja/values/marked_text.h"
#include "jinja/values/value.h"

namespace fp8kv::jinja {

// Returns the text with every character changed. `change` appends to its first argument.
MarkedText changed_chars(Runtime& runtime, const MarkedText& text,
                         const std::function<void(std::string&, char32_t)>& change);

MarkedText lower(Runtime& runtime, const MarkedText& text);
MarkedText upper(Runtime& runtime, const MarkedText& text);
MarkedText capitalized(Runtime& runtime, const MarkedText& text);

enum class Side { left, right, both };
// Strips the characters in `chars` from the ends; nullptr strips white space.
MarkedText stripped(Runtime& runtime, const MarkedText& text, const std::string* chars, Side side);

// `most`: the number of replacements; negative: all.
MarkedText replaced(Runtime& runtime, const MarkedText& text, const MarkedText& old,
                    const MarkedText& by, int64_t most);

// Like Python's splitlines().
std::vector<MarkedText> lines_of(Runtime& runtime, const MarkedText& text, bool keep_ends);

// Centres the text in `width` characters.
MarkedText centered(Runtime& runtime, const MarkedText& text, int64_t width);

}  // namespace fp8kv::jinja
