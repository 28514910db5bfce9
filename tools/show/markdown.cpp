#include "show/markdown.h"

#include <algorithm>

#include "base/terminal_text.h"

namespace fp8kv {
namespace {

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return terminal_line(line);
}

}  // namespace

std::string markdown_text(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*[]<>|~&#$";
  const std::string line = one_line(text);
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    // An underscore between letters or digits is no markup: fp8_e4m3.
    const bool inside =
        i > 0 && i + 1 < line.size() && is_word(line[i - 1]) && is_word(line[i + 1]);
    const bool markup = line[i] == '_' ? !inside : kMarkup.find(line[i]) != kMarkup.npos;
    if (markup) out += '\\';
    out += line[i];
  }
  return out;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows,
                           const std::vector<bool>& left) {
  std::string out;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const std::string& cell : rows[i]) out += "| " + markdown_text(cell) + " ";
    out += "|\n";
    if (i > 0) continue;
    for (const bool is_left : left) out += is_left ? "|---" : "|--:";
    out += "|\n";
  }
  return out + "\n";
}

std::string markdown_list(std::span<const std::string> lines) {
  std::string out;
  for (const std::string& line : lines) out += "- " + markdown_text(line) + "\n";
  return lines.empty() ? out : out + "\n";
}

std::string markdown_commands(std::span<const std::string> commands) {
  std::string out = "```sh\n";
  for (const std::string& command : commands) out += one_line(command) + "\n";
  return commands.empty() ? "" : out + "```\n\n";
}

}  // namespace fp8kv
