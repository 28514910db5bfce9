// Two texts side by side, with a mark where they part.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fp8kv {

// The first byte in which two texts differ, moved back to the beginning of its character.
size_t parting_place(std::string_view a, std::string_view b);

// The text around `place`, with its first word from there on marked. What is before it is dimmed. A
// text that ends at `place` gets the mark "ends here". Markup.
std::string parted_text(std::string_view text, size_t place);

// The first `most` bytes, in whole characters, with an ellipsis if there is more.
std::string cut_text(std::string_view text, size_t most);

}  // namespace fp8kv
