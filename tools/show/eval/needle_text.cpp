#include "show/eval/needle_text.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "show/output.h"

namespace fp8kv {
namespace {

struct FoundOf {
  uint64_t found = 0;
  uint64_t asked = 0;
};
// By depth in percent, then by length.
using NeedleGrid = std::map<long, std::map<int64_t, FoundOf>>;

// One grid for each kind. The test of a cache may end before the last item.
std::map<NeedleKind, NeedleGrid> grids_of(const TaskReport& report, const TaskCacheReport& cache) {
  std::map<NeedleKind, NeedleGrid> grids;
  for (size_t i = 0; i < cache.answers.size(); ++i) {
    const NeedlePlace& place = *report.items[i].place;
    FoundOf& cell = grids[place.kind][std::lround(place.depth * 100)][place.length];
    cell.found += cache.answers[i].right[report.main_score];
    ++cell.asked;
  }
  return grids;
}

std::string grid_text(const NeedleGrid& grid) {
  std::set<int64_t> lengths;
  for (const auto& [depth, row] : grid) {
    for (const auto& [length, cell] : row) lengths.insert(length);
  }
  std::vector<std::string> header = {"depth"};
  for (const int64_t length : lengths) {
    header.push_back(cat(grouped(static_cast<uint64_t>(length)), " tokens"));
  }
  Table table(header);
  for (const auto& [depth, row] : grid) {
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
    for (const auto& [kind, grid] : grids_of(report, cache)) {
      text += cat("\n", cache.name, ", ", needle_kind_name(kind), "\n", grid_text(grid));
    }
  };
  if (report.items.empty() || !report.items[0].place) return "";
  add(report.baseline);
  for (const TaskCacheReport& cache : report.caches) add(cache);
  return text;
}

}  // namespace fp8kv
