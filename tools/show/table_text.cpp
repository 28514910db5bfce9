#include "show/table_text.h"

#include <algorithm>
#include <numeric>

namespace fp8kv {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kNarrowestText = 20;  // a column of text with less is hard to read

// Columns a string takes on a terminal, near enough: code points.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  size_t at = 0;
  for (size_t end; (end = text.find(' ', at)) != text.npos; at = end + 1) {
    words.push_back(text.substr(at, end - at));
  }
  words.push_back(text.substr(at));
  return words;
}

// Lines that are `text` again when put together with a blank between them.
std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  for (const std::string& word : words_of(text)) {
    const bool fits = !lines.empty() && width_of(lines.back()) + 1 + width_of(word) <= width;
    if (fits) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

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
    // The first name alone rather than none that fit.
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
  // What the column needs when its texts are broken.
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

  // Each begins with the first `n_names` columns and has one more at least.
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

  // The last column gets what the others leave of `limit`.
  std::string print(const std::vector<size_t>& columns, size_t limit) const {
    const size_t last = columns.back();
    const size_t others = least_of(columns) - narrowest_[last];
    const bool breaks = narrowest_[last] < widths_[last];
    const size_t room = std::min(widths_[last], limit - others);
    std::string out;
    for (const auto& row : cells_.rows) {
      const std::vector<std::string> texts =
          breaks ? wrapped(row[last], room) : std::vector<std::string>{row[last]};
      std::string line;
      for (const size_t column : columns) {
        if (column == last) break;
        line += padded(row[column], column, widths_[column]) + std::string(kGap, ' ');
      }
      for (size_t i = 0; i < texts.size(); ++i) {
        if (i > 0) line = std::string(others, ' ');
        line += padded(texts[i], last, room);
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

std::string sentence_text(const std::string& sentence, size_t width, size_t indent) {
  size_t widest = 0;
  for (size_t at = 0, end = 0; end != sentence.npos; at = end + 1) {
    end = sentence.find('\n', at);
    widest = std::max(widest, width_of(sentence.substr(at, end - at)));
  }
  if (widest <= width || width < indent + kNarrowestText) return sentence;
  std::string words = sentence.substr(indent);
  std::replace(words.begin(), words.end(), '\n', ' ');
  std::string text = sentence.substr(0, indent);
  for (const std::string& line : wrapped(words, width - indent)) {
    text += (text.size() == indent ? "" : "\n" + std::string(indent, ' ')) + line;
  }
  return text;
}

}  // namespace fp8kv
