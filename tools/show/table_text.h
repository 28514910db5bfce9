// Formats cells as text in columns, for a width in characters.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/wrapped_text.h"

namespace fp8kv {

struct TableCells {
  std::vector<std::vector<std::string>> rows;  // the first is the header; all have the same length
  std::vector<bool> left;                      // for each column: left-aligned
  size_t names = 1;                            // columns at the start that identify a row
};

// Columns two blanks apart, in lines of at most `width`. A table that is too wide first breaks the
// texts of its last column at blanks, if that column is left-aligned.
// If that is not enough, the columns come in groups below each other. Each group repeats the
// columns that name the rows, or only the first of those.
// No cell is left out. If a column does not fit even then, the table is printed without a limit.
std::string table_text(const TableCells& cells, size_t width);

}  // namespace fp8kv
