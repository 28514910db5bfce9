// Asks every cache the same items, block by block, and stops once every test is decided.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/log.h"
#include "tasks/recovery_test.h"
#include "tasks/task_report.h"

namespace fp8kv {

// The answers of a cache, 0 the baseline, to some items by number, in their order. Tells `progress`
// of each item.
using AnswerItems = std::function<std::vector<TaskAnswer>(
    size_t cache, std::span<const size_t> items, Progress& progress)>;

struct PairedRun {
  uint64_t items = 0;  // that there are
  uint64_t block = 32;
  std::optional<Acceptance> accept;  // items come in random order then, of a fixed seed
};

// Fills in the answers and counts of the baseline and of the caches, which have their names.
// Returns the numbers of the items that were asked. A cache whose test is decided is asked no more.
std::vector<size_t> run_paired(const PairedRun& run, const AnswerItems& answer, TaskReport& report,
                               Log& log);

}  // namespace fp8kv
