#include "show/table_text.h"

#include <algorithm>
#include <numeric>

#include "base/wrapped_text.h"

namespace fp8kv {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kNarrowestText = 20;  // a narrower column of text is hard to read

class Layout {
 public:
  Layout(const TableCells& cells, size_t width)
      : cells_(cells), limit_(width), widths_(cells.left.size()) {
    for (const auto& row : cells.rows) {
      for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], width_of(row[i]));
    }
    const size_t last = widths_.size() - 1;
    narrowest_ = widths_;
    if (cells.left[last] && last >= cells.names) narrowest_[last] = narrowest_text(last);
  }

  std::string text() const {
    std::vector<size_t> columns;
    for (size_t i = 0; i < widths_.size(); ++i) columns.push_back(i);
    if (least_of(columns) <= limit_) return print(columns, limit_);
    // If no group fits beside all names, tries the first name alone.
    for (const size_t names : {cells_.names, size_t(1)}) {
      std::string out;
      bool fits = true;
      for (const auto& group : groups(names)) {
        fits = fits && least_of(group) <= limit_;
        if (fits) out += (out.empty() ? "" : "\n") + print(group, limit_);
      }
      if (fits) return out;
    }
    return print(columns, kUnlimitedWidth);
  }

 private:
  // The width that the column needs if its texts are broken.
  size_t narrowest_text(size_t column) const {
    size_t longest_word = kNarrowestText;
    for (const auto& row : cells_.rows) {
      for (const std::string& word : words_of(row[column])) {
        longest_word = std::max(longest_word, width_of(word));
      }
    }
    return std::min(longest_word, widths_[column]);
  }

  size_t least_of(const std::vector<size_t>& columns) const {
    size_t total = kGap * (columns.size() - 1);
    for (const size_t column : columns) total += narrowest_[column];
    return total;
  }

  // Groups of columns. Each starts with the first `n_names` columns, and has at least one more.
  std::vector<std::vector<size_t>> groups(size_t n_names) const {
    std::vector<size_t> names(std::min(n_names, widths_.size()));
    std::iota(names.begin(), names.end(), size_t(0));
    std::vector<std::vector<size_t>> groups;
    std::vector<size_t> group = names;
    for (size_t i = names.size(); i < widths_.size(); ++i) {
      group.push_back(i);
      if (least_of(group) <= limit_ || group.size() == names.size() + 1) continue;
      group.pop_back();
      groups.push_back(group);
      group = names;
      group.push_back(i);
    }
    groups.push_back(group);
    return groups;
  }

  // Prints these columns. The last one gets the width that the others leave of `limit`.
  std::string print(const std::vector<size_t>& columns, size_t limit) const {
    const size_t last = columns.back();
    const size_t others = least_of(columns) - narrowest_[last];
    const bool breaks = narrowest_[last] < widths_[last];
    const size_t width = std::min(widths_[last], limit - others);
    std::string out;
    for (const auto& row : cells_.rows) {
      const std::vector<std::string> texts =
          breaks ? wrapped(row[last], width) : std::vector<std::string>{row[last]};
      std::string line;
      for (const size_t column : columns) {
        if (column == last) break;
        line += padded(row[column], column, widths_[column]) + std::string(kGap, ' ');
      }
      for (size_t i = 0; i < texts.size(); ++i) {
        if (i > 0) line = std::string(others, ' ');
        line += padded(texts[i], last, width);
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
      }
    }
    return out;
  }

  std::string padded(const std::string& cell, size_t column, size_t width) const {
    const size_t taken = width_of(cell);
    const std::string pad(taken < width ? width - taken : 0, ' ');
    return cells_.left[column] ? cell + pad : pad + cell;
  }

  const TableCells& cells_;
  size_t limit_;
  std::vector<size_t> widths_;
  std::vector<size_t> narrowest_;
};

}  // namespace

std::string table_text(const TableCells& cells, size_t width) {
  return Layout(cells, width).text();
}

}  // namespace fp8kv
