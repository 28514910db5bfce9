#include "show/output.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "files/output/write_file.h"
#include "show/markdown.h"

namespace fp8kv {

void print(std::string_view text) {
  write_stdout(text);
}

void print_text(std::string_view text) {
  write_stdout(terminal_text(text));
}

void print_made(std::string_view text) {
  isatty(STDOUT_FILENO) == 1 ? print_text(text) : print(text);
}

std::string sentence(const std::string& text, size_t indent) {
  return sentence_text(text, terminal_width(STDOUT_FILENO), indent);
}

std::string noted(const std::string& name, const std::string& text) {
  constexpr size_t kNames = 10;
  return sentence(name + std::string(kNames - name.size(), ' ') + text, kNames) + "\n";
}

Table::Table(std::vector<std::string> header, std::vector<bool> left, size_t names)
    : cells_{{}, std::move(left), names} {
  FP8KV_ASSERT(names <= header.size());
  cells_.left.resize(header.size(), false);
  cells_.rows.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) {
  FP8KV_ASSERT(row.size() == cells_.rows[0].size());
  for (std::string& cell : row) cell = terminal_line(cell);
  cells_.rows.push_back(std::move(row));
}

std::string Table::text() const {
  return table_text(cells_, terminal_width(STDOUT_FILENO));
}

std::string Table::markdown() const {
  return markdown_table(cells_.rows, cells_.left);
}

std::string significant(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  return buffer;
}

}  // namespace fp8kv
