// What filters and methods of strings share.
#pragma once

#include <functional>
#include <string>

#include "jinja/values/marked_text.h"
#include "jinja/values/value.h"

namespace fp8kv::jinja {

// The text with each character as `change` makes it, which appends to what it is given.
MarkedText changed_chars(Runtime& runtime, const MarkedText& text,
                         const std::function<void(std::string&, char32_t)>& change);

MarkedText lower(Runtime& runtime, const MarkedText& text);
MarkedText upper(Runtime& runtime, const MarkedText& text);
MarkedText capitalized(Runtime& runtime, const MarkedText& text);

enum class Side { left, right, both };
// Without the characters of `chars` at its ends; nullptr: without white space.
MarkedText stripped(Runtime& runtime, const MarkedText& text, const std::string* chars, Side side);

// `most`: replacements; negative: all.
MarkedText replaced(Runtime& runtime, const MarkedText& text, const MarkedText& old,
                    const MarkedText& by, int64_t most);

// As Python's splitlines().
std::vector<MarkedText> lines_of(Runtime& runtime, const MarkedText& text, bool keep_ends);

// `width` characters, the text in their middle.
MarkedText centered(Runtime& runtime, const MarkedText& text, int64_t width);

}  // namespace fp8kv::jinja
