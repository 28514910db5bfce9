// Asks every cache the same items, block by block, and stops once every test is decided.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/log.h"
#include "tasks/compare/recovery_test.h"
#include "tasks/compare/task_report.h"

namespace fp8kv {

// Returns a cache's answers to the numbered items, in their order. Cache 0 is the baseline.
// Advances `progress` by one per item.
using AnswerItems = std::function<std::vector<TaskAnswer>(
    size_t cache, std::span<const size_t> items, Progress& progress)>;

struct PairedRun {
  uint64_t items = 0;  // number of items of the task
  uint64_t block = 32;
  std::optional<Acceptance> accept;  // if set, items come in random order, by a fixed seed
};

// Asks the baseline and the caches of `report`, whose names are set, and fills in their answers and
// counts. Once a cache's test is decided, the cache is asked no more. Returns the numbers of the
// items asked.
std::vector<size_t> run_paired(const PairedRun& run, const AnswerItems& answer, TaskReport& report,
                               Log& log);

}  // namespace fp8kv
