// Results on standard output.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "show/table_text.h"

namespace fp8kv {

// Writes JSON, or what else is printed as it is. Throws as write_stdout does.
void print(std::string_view text);

// Writes lines for people, in which foreign names may stand: see terminal_text().
void print_text(std::string_view text);

// Writes at once, so that text appears as a model makes it. Only a terminal gets it cleaned.
void print_made(std::string_view text);

// A sentence for standard output, a line without its end: as it is, or where that is a narrower
// terminal, in lines that begin below what follows the first `indent` characters.
std::string sentence(const std::string& text, size_t indent = 0);

// "verdict   1.0 is safe in every layer": a sentence beside a name of at most ten characters, with
// its end of line.
std::string noted(const std::string& name, const std::string& text);

// Text in columns two blanks apart: the first column left-aligned, the others right-aligned, unless
// `left` says otherwise. The first `names` columns say what a row is.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<bool> left = {true},
                 size_t names = 1);
  void add(std::vector<std::string> row);
  // For standard output: as wide as it needs, or where that is a terminal in that one's width.
  std::string text() const;

 private:
  TableCells cells_;
};

// A number to `digits` significant digits, as short as possible: "23.89", "0.00338".
std::string significant(double value, int digits = 4);

}  // namespace fp8kv
