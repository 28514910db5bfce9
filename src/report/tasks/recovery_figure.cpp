#include "report/tasks/recovery_figure.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "draw/interval_chart.h"
#include "draw/numbers.h"

namespace fp8kv {
namespace {

bool is_marked(Standing standing) {
  return standing == Standing::worse || standing == Standing::better;
}

IntervalRow interval_row(const CacheComparison& each) {
  const Recovery recovery = recovery_of(each.counts());
  const std::string mark = is_marked(each.standing) ? standing_name(each.standing) : "";
  return {.name = each.cache->name,
          .value = recovery.value,
          .low = recovery.low,
          .high = recovery.high,
          .text = recovery_interval(recovery),
          .tip = cat(each.cache->name, ", ", task_title(*each.task), ": recovery ",
                     recovery_percent(recovery.value), ", 95 % interval ",
                     recovery_interval(recovery), mark.empty() ? "" : ", ", mark),
          .style = static_cast<int>(each.cache - each.task->caches.data()),
          .mark = mark};
}

std::vector<IntervalLine> reference_lines(std::span<const CacheComparison> comparisons) {
  std::set<double> bounds;
  for (const CacheComparison& each : comparisons) {
    if (each.cache->test && each.cache->test->bound() < 1) bounds.insert(each.cache->test->bound());
  }
  std::vector<IntervalLine> lines = {{1, "100 %"}};
  for (const double bound : bounds) {
    lines.push_back({bound, "bound " + short_percent(bound, 6), true});
  }
  return lines;
}

}  // namespace

std::string recovery_figure(std::span<const TaskReport> reports,
                            std::span<const CacheComparison> comparisons) {
  IntervalChart chart{
      .id = "recovery-intervals",
      .title = "Recovery of each cache, with 95 % intervals",
      .caption =
          "Recovery is the share of right answers over that of the baseline. Each line is a 95 % "
          "interval, and its marker the recovery of these items. A full marker is a difference "
          "beyond chance, a hollow one is not. An arrow: the interval goes on, beyond the axis.",
      .x_label = "recovery",
      .tick = [](double value) { return short_percent(value); },
      .groups = {},
      .lines = reference_lines(comparisons)};
  for (const TaskReport& report : reports) {
    IntervalGroup group{task_title(report), {}};
    for (const CacheComparison& each : comparisons) {
      if (each.task == &report && each.has_recovery()) group.rows.push_back(interval_row(each));
    }
    if (!group.rows.empty()) chart.groups.push_back(std::move(group));
  }
  return chart.groups.empty() ? "" : draw_intervals(chart);
}

}  // namespace fp8kv
