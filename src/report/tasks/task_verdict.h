// The verdict of the items on the caches, in sentences. Never calls caches equal: where the items
// do not tell them apart, it gives the interval of recovery.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/tasks/standings.h"

namespace fp8kv {

struct TaskVerdict {
  std::string css_class;           // "good", "unsure" or "bad"
  std::vector<std::string> lines;  // plain sentences; the first is the headline
};
TaskVerdict task_verdict(std::span<const TaskReport> reports,
                         std::span<const CacheComparison> comparisons);

}  // namespace fp8kv
