#include "report/tasks/needle_grid.h"

#include <cmath>
#include <set>

namespace fp8kv {

std::vector<int64_t> NeedleGrid::lengths() const {
  std::set<int64_t> found;
  for (const auto& [depth, row] : rows) {
    for (const auto& [length, cell] : row) found.insert(length);
  }
  return {found.begin(), found.end()};
}

std::map<NeedleKind, NeedleGrid> needle_grids_of(const TaskReport& report,
                                                 const TaskCacheReport& cache) {
  std::map<NeedleKind, NeedleGrid> grids;
  for (size_t i = 0; i < cache.answers.size(); ++i) {
    const NeedlePlace& place = *report.items[i].place;
    FoundNeedles& cell = grids[place.kind].rows[std::lround(place.depth * 100)][place.length];
    cell.found += cache.answers[i].right[report.main_score];
    ++cell.asked;
  }
  return grids;
}

bool has_needles(const TaskReport& report) {
  return !report.items.empty() && report.items[0].place.has_value();
}

}  // namespace fp8kv
