// Counts the needles that a cache found, by kind, depth and length.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tasks/compare/task_report.h"

namespace fp8kv {

struct FoundNeedles {
  uint64_t found = 0;
  uint64_t asked = 0;
};

struct NeedleGrid {
  // By depth in percent, then by length in tokens. Cells that were not asked are absent.
  std::map<long, std::map<int64_t, FoundNeedles>> rows;

  std::vector<int64_t> lengths() const;  // of all rows, ascending
};

// One grid for each kind. The test of a cache may end before the last item, so grids may have fewer
// cells than the baseline's. REQUIRES a report of the task needle.
std::map<NeedleKind, NeedleGrid> needle_grids_of(const TaskReport& report,
                                                 const TaskCacheReport& cache);

// Whether the items of the report have needles.
bool has_needles(const TaskReport& report);

}  // namespace fp8kv
