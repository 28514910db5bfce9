// Invented answers of caches to tasks, for pages: plain ones, and odd ones that real runs may
// produce.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/tasks/tasks_html.h"
#include "tasks/compare/task_report.h"

namespace fp8kv::test {

struct SampleCache {
  PairedCounts counts;
  std::string name = "fp8_e4m3 unit";
};

struct SampleTask {
  std::string task = "choices";
  std::vector<SampleCache> caches = {};
  bool generates = false;
  double bound = 0;       // of --accept; 0: none
  std::string name = {};  // appended to every text from outside
};

// All caches must have as many items as the first, and as many of them right with the baseline.
TaskReport sample_task(const SampleTask& shape);

// Needles at `depths` by `lengths`, for each kind, of which the second cache misses some.
TaskReport sample_needles(int64_t depths, int64_t lengths, const std::vector<NeedleKind>& kinds);

TasksPageFacts sample_task_facts(const std::string& name);

// Pages with names: plain, accepting, many, unsolved, without caches, and hostile.
std::vector<std::pair<std::string, std::string>> sample_task_pages(const std::string& hostile);

}  // namespace fp8kv::test
