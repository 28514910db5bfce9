// Compares each cache of each task with the baseline, and corrects for the number of comparisons.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasks/compare/task_report.h"

namespace fp8kv {

// By chance alone at most one page in twenty marks any cache.
inline constexpr double kSignificance = 0.05;

enum class Standing {
  not_shown,  // the items do not tell the cache from the baseline
  worse,      // fewer right than the baseline, beyond chance
  better,     // more right than the baseline, beyond chance
  stopped     // --accept ended the items early, which p does not account for
};

struct CacheComparison {
  const TaskReport* task = nullptr;
  const TaskCacheReport* cache = nullptr;
  double p = 1;       // McNemar's, of this comparison alone
  double holm_p = 1;  // corrected by Holm's method; 1 if stopped
  Standing standing = Standing::not_shown;

  const PairedCounts& counts() const { return cache->counts[task->main_score]; }
  bool has_recovery() const { return counts().baseline_right() > 0; }
};

// One comparison for each task and cache, in this order. Compares the main scores. They refer to
// `reports`.
std::vector<CacheComparison> compare_all(std::span<const TaskReport> reports);

// The number of comparisons that the correction is for.
uint64_t corrected_for(std::span<const CacheComparison> comparisons);

// "85.3 %", or "no bound" for infinity.
std::string recovery_percent(double share);
// "85.3 % to 117.2 %".
std::string recovery_interval(const Recovery& recovery);
// "0.0039".
std::string p_text(double p);
// "worse", "better", "not shown", "stopped".
const char* standing_name(Standing standing);
// The CSS class of a badge.
const char* standing_class(Standing standing);

// "needle: tinyshakespeare.txt".
std::string task_title(const TaskReport& report);

}  // namespace fp8kv
