// Results on standard output.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "show/table_text.h"

namespace fp8kv {

// Writes JSON and other text unchanged. Throws the errors of write_stdout.
void print(std::string_view text);

// Writes lines for people. Foreign names are cleaned; see terminal_text().
void print_text(std::string_view text);

// Writes generated text at once, so that it appears as the model makes it. Cleans it only for a
// terminal.
void print_made(std::string_view text);

// A sentence for standard output, without a newline at the end. In a narrower terminal it is broken
// into lines that align after the first `indent` characters.
std::string sentence(const std::string& text, size_t indent = 0);

// "verdict   1.0 is safe in every layer": a name of at most ten characters, a sentence, and a
// newline.
std::string noted(const std::string& name, const std::string& text);

// Text in columns, two blanks apart. The first column is left-aligned and the others right-aligned,
// unless `left` says otherwise. The first `names` columns identify a row.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<bool> left = {true},
                 size_t names = 1);
  void add(std::vector<std::string> row);
  // The table for standard output. In a terminal it fits the terminal's width.
  std::string text() const;
  // See markdown_table().
  std::string markdown() const;

 private:
  TableCells cells_;
};

// A number to `digits` significant digits, as short as possible: "23.89", "0.00338".
std::string significant(double value, int digits = 4);

}  // namespace fp8kv
