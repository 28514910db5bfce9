// Cells as text in columns, for a width in characters.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/wrapped_text.h"

namespace fp8kv {

struct TableCells {
  std::vector<std::vector<std::string>> rows;  // the first is the header; all of one length
  std::vector<bool> left;                      // of each column: left-aligned
  size_t names = 1;                            // columns at the start that say what a row is
};

// Columns two blanks apart, in lines of at most `width`. A table that is wider has the texts of its
// last column, if that is left-aligned, broken at blanks onto further lines. Where that is not
// enough, its columns come in groups below each other, each beside the names of the rows, or beside
// the first of them. Nothing is left out; a table of which a column does not fit beside that either
// is as it would be without a limit.
std::string table_text(const TableCells& cells, size_t width);

}  // namespace fp8kv
