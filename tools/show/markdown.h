// Text as Markdown, for the page of a job in CI.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv {

// Escapes what Markdown would take as markup, and shows bytes that do not print, like
// terminal_line(). A newline becomes a blank.
std::string markdown_text(std::string_view text);

// A table with a header and a blank line at the end. `left`: the left-aligned columns.
// REQUIRES rows of one length, the first of which is the header.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows,
                           const std::vector<bool>& left);

// "- line" for each line, and a blank line at the end; "" without lines.
std::string markdown_list(std::span<const std::string> lines);

// A block of commands for a shell, and a blank line at the end; "" without commands.
std::string markdown_commands(std::span<const std::string> commands);

}  // namespace fp8kv
