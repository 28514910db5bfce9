#include "show/output.h"

#include <algorithm>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/file.h"

namespace fp8kv {
namespace {

// A terminal that does not know its width says 0.
size_t stdout_width() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUnlimitedWidth;
}

}  // namespace

void print(std::string_view text) {
  write_stdout(text);
}

std::string printable(std::string_view line) {
  const bool harmless = is_utf8(line) && std::none_of(line.begin(), line.end(), [](char c) {
                          return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
                        });
  return harmless ? std::string(line) : plain(line);
}

std::string sentence(const std::string& text, size_t indent) {
  return sentence_text(text, stdout_width(), indent);
}

Table::Table(std::vector<std::string> header, std::vector<bool> left, size_t names)
    : cells_{{}, std::move(left), names} {
  FP8KV_ASSERT(names <= header.size());
  cells_.left.resize(header.size(), false);
  cells_.rows.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) {
  FP8KV_ASSERT(row.size() == cells_.rows[0].size());
  cells_.rows.push_back(std::move(row));
}

std::string Table::text() const {
  return table_text(cells_, stdout_width());
}

std::string significant(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  return buffer;
}

}  // namespace fp8kv
