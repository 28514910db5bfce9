#include "show/eval/needle_text.h"

#include <utility>
#include <vector>

#include "base/text.h"
#include "report/tasks/needle_grid.h"
#include "show/output.h"

namespace fp8kv {
namespace {

std::string grid_text(const NeedleGrid& grid) {
  const std::vector<int64_t> lengths = grid.lengths();
  std::vector<std::string> header = {"depth"};
  for (const int64_t length : lengths) {
    header.push_back(cat(grouped(static_cast<uint64_t>(length)), " tokens"));
  }
  Table table(header);
  for (const auto& [depth, row] : grid.rows) {
    std::vector<std::string> cells = {cat(depth, "%")};
    for (const int64_t length : lengths) {
      const auto cell = row.find(length);
      cells.push_back(cell == row.end() ? "-"
                                        : cat(cell->second.found, " of ", cell->second.asked));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

}  // namespace

std::string needle_grids(const TaskReport& report) {
  std::string text;
  const auto add = [&](const TaskCacheReport& cache) {
    for (const auto& [kind, grid] : needle_grids_of(report, cache)) {
      text += cat("\n", cache.name, ", ", needle_kind_name(kind), "\n", grid_text(grid));
    }
  };
  if (!has_needles(report)) return "";
  add(report.baseline);
  for (const TaskCacheReport& cache : report.caches) add(cache);
  return text;
}

}  // namespace fp8kv
