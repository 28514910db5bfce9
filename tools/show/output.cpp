#include "show/output.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "files/file.h"

namespace fp8kv {
namespace {

// Columns a string takes on a terminal, near enough: code points.
size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

void print(std::string_view text) {
  write_stdout(text);
}

Table::Table(std::vector<std::string> header, std::vector<bool> left) : left_(std::move(left)) {
  left_.resize(header.size(), false);
  rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) {
  FP8KV_ASSERT(row.size() == rows_[0].size());
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - width(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (left_[i] ? row[i] + pad : pad + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string significant(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  return buffer;
}

}  // namespace fp8kv
