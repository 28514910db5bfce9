#include "docs/markdown.h"

#include <algorithm>
#include <sstream>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/places.h"
#include "support/temp_dir.h"

namespace fp8kv::test {
namespace {

std::string line_of(const Cells& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) {
    line += " ";
    for (const char c : cell) line += c == '|' ? std::string("\\|") : std::string(1, c);
    line += cell.empty() ? "|" : " |";
  }
  return line + "\n";
}

std::string head_of(const Cells& cells) {
  std::string rule = "|";
  for (size_t i = 0; i < cells.size(); ++i) rule += "---|";
  return line_of(cells) + rule + "\n";
}

// The text below `heading`, up to the next heading.
std::string section_of(const std::string& page, const std::string& heading) {
  const std::string text = page_text(page);
  const size_t at = text.find("\n" + heading + "\n");
  REQUIRE_MESSAGE(at != text.npos, page, " has no heading ", heading);
  const size_t begin = at + 1 + heading.size();
  return text.substr(begin, text.find("\n#", begin) - begin) + "\n";
}

}  // namespace

std::vector<std::string> pages() {
  std::vector<std::string> found = {"README.md", "CONTRIBUTING.md"};
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "docs")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".md")) found.push_back("docs/" + name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string page_text(const std::string& page) {
  const std::string text = read_file(source_dir() / page);
  REQUIRE_MESSAGE(!text.empty(), page, " is not there");
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase(words, "");
  return words;
}

std::vector<std::string> code_on(const std::string& page) {
  std::vector<std::string> pieces;
  bool in_block = false;
  for (const std::string& line : lines_of(page_text(page))) {
    if (line.starts_with("```")) {
      in_block = !in_block;
    } else if (in_block) {
      pieces.push_back(line.substr(0, line.find(" # ")));
    } else {
      for (size_t at = line.find('`'); at != line.npos;) {
        const size_t end = line.find('`', at + 1);
        if (end == line.npos) break;
        pieces.push_back(line.substr(at + 1, end - at - 1));
        at = line.find('`', end + 1);
      }
    }
  }
  return pieces;
}

void check_table(const std::string& page, const Cells& head, const std::vector<Cells>& rows,
                 const std::string& heading) {
  std::string table = head_of(head);
  for (const Cells& row : rows) table += line_of(row);
  const std::string text = heading.empty() ? page_text(page) : section_of(page, heading);
  const size_t at = text.find("\n" + table);
  const bool found = at != text.npos && text[at + 1 + table.size()] != '|';
  CHECK_MESSAGE(found, page, heading.empty() ? "" : " under " + heading,
                " lacks this table, as it follows from the code:\n\n", table);
}

std::vector<std::string> first_column(const std::string& page, const Cells& head) {
  const std::string text = page_text(page);
  const std::string top = head_of(head);
  const size_t at = text.find("\n" + top);
  REQUIRE_MESSAGE(at != text.npos, page, " has no table with this head:\n", top);
  std::vector<std::string> cells;
  for (const std::string& line : lines_of(text.substr(at + 1 + top.size()))) {
    if (!line.starts_with("| ")) break;
    std::string cell = line.substr(2, line.find(" |") - 2);
    std::erase(cell, '`');
    cells.push_back(cell);
  }
  return cells;
}

std::string code(const std::string& text) {
  return cat("`", text, "`");
}

}  // namespace fp8kv::test
