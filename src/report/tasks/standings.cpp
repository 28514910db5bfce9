#include "report/tasks/standings.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "draw/numbers.h"
#include "report/pages/page_parts.h"

namespace fp8kv {
namespace {

// Holm (1979): the smallest p times m, the next one times m - 1, ..., and none below the one
// before.
void correct_by_holm(std::vector<CacheComparison*> open) {
  std::ranges::stable_sort(open, {}, [](const CacheComparison* each) { return each->p; });
  double most = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    most = std::max(most, open[i]->p * static_cast<double>(open.size() - i));
    open[i]->holm_p = std::min(1.0, most);
  }
}

}  // namespace

std::vector<CacheComparison> compare_all(std::span<const TaskReport> reports) {
  std::vector<CacheComparison> all;
  for (const TaskReport& report : reports) {
    for (const TaskCacheReport& cache : report.caches) {
      CacheComparison& each = all.emplace_back(CacheComparison{&report, &cache});
      each.p = mcnemar_p(each.counts().wins, each.counts().losses);
      if (cache.answers.size() < report.there) each.standing = Standing::stopped;
    }
  }
  std::vector<CacheComparison*> open;
  for (CacheComparison& each : all) {
    if (each.standing != Standing::stopped) open.push_back(&each);
  }
  correct_by_holm(open);
  for (CacheComparison* each : open) {
    if (each->holm_p >= kSignificance) continue;
    const PairedCounts& counts = each->counts();
    each->standing = counts.wins < counts.losses ? Standing::worse : Standing::better;
  }
  return all;
}

uint64_t corrected_for(std::span<const CacheComparison> comparisons) {
  return static_cast<uint64_t>(std::ranges::count_if(
      comparisons, [](const CacheComparison& each) { return each.standing != Standing::stopped; }));
}

std::string recovery_percent(double share) {
  return std::isfinite(share) ? fixed(share * 100, 1) + " %" : "no bound";
}

std::string recovery_interval(const Recovery& recovery) {
  return cat(recovery_percent(recovery.low), " to ", recovery_percent(recovery.high));
}

std::string p_text(double p) {
  return short_number(p, 2);
}

const char* standing_name(Standing standing) {
  switch (standing) {
    case Standing::worse:
      return "worse";
    case Standing::better:
      return "better";
    case Standing::stopped:
      return "stopped";
    case Standing::not_shown:
      break;
  }
  return "not shown";
}

const char* standing_class(Standing standing) {
  switch (standing) {
    case Standing::worse:
      return "bad";
    case Standing::better:
      return "good";
    case Standing::stopped:
    case Standing::not_shown:
      break;
  }
  return "unsure";
}

std::string task_title(const TaskReport& report) {
  return cat(report.task, ": ", last_part(report.file));
}

}  // namespace fp8kv
