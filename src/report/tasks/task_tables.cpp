#include "report/tasks/task_tables.h"

#include <cmath>

#include "base/text.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/numbers.h"
#include "report/pages/page_parts.h"
#include "tasks/compare/text_difference.h"

namespace fp8kv {
namespace {

using HtmlRow = std::vector<HtmlCell>;

std::string asked_text(const TaskReport& report) {
  return cat(report.form, " form, ", report.few_shot, "-shot, ", grouped(report.items.size()),
             " of ", count_of(report.there, "item"), ", compared by ",
             report.scores[report.main_score]);
}

HtmlCell score_cell(const PairedCounts& counts) {
  const uint64_t items = counts.items();
  const double share =
      items == 0 ? 0 : static_cast<double>(counts.right()) / static_cast<double>(items);
  return {cat(fixed(share, 4), " ± ", fixed(share_error(counts.right(), items), 4)), cat(share)};
}

HtmlCell decision_cell(const RecoveryTest& test) {
  const std::string after = cat(" after ", grouped(test.items()));
  switch (test.decision()) {
    case Decision::accepted:
      return {"accepted" + after, "", "", "badge good"};
    case Decision::refused:
      return {"refused" + after, "", "", "badge bad"};
    case Decision::open:
      break;
  }
  return {"not decided", "", "", "badge unsure"};
}

void add_scores(const TaskCacheReport& cache, HtmlRow& row) {
  row.push_back({grouped(cache.answers.size()), ""});
  for (const PairedCounts& counts : cache.counts) row.push_back(score_cell(counts));
}

HtmlRow baseline_row(const TaskReport& report, size_t columns) {
  const TaskCacheReport& baseline = report.baseline;
  HtmlRow row = {{baseline.name, "", "<span class=\"sign\"></span>"}, {"baseline", ""}};
  if (report.accepts()) row.push_back({"–", ""});
  add_scores(baseline, row);
  row.resize(columns, {"–", ""});
  return row;
}

HtmlRow comparison_row(const CacheComparison& each) {
  const TaskReport& report = *each.task;
  const int style = static_cast<int>(each.cache - report.caches.data());
  HtmlRow row = {
      {each.cache->name, "", cat("<span class=\"sign\">", series_sign(style), "</span>")},
      {standing_name(each.standing), "", "", cat("badge ", standing_class(each.standing))}};
  if (report.accepts()) row.push_back(decision_cell(*each.cache->test));
  add_scores(*each.cache, row);
  const PairedCounts& counts = each.counts();
  for (const uint64_t count : {counts.wins, counts.losses, counts.ties()}) {
    row.push_back({grouped(count), ""});
  }
  row.push_back({p_text(each.p), ""});
  row.push_back({each.has_recovery() ? recovery_interval(recovery_of(counts)) : "–", ""});
  if (report.generates) {
    const TextDifference texts = difference_of(each.cache->answers, report.baseline.answers);
    row.push_back({cat(grouped(texts.identical), " of ", grouped(texts.compared)), ""});
    row.push_back({texts.median_place ? cat("token ", grouped(*texts.median_place)) : "–", ""});
    row.push_back({cat(short_number(texts.kld),
                       texts.kld_error ? " ± " + short_number(*texts.kld_error, 2) : ""),
                   ""});
  }
  return row;
}

}  // namespace

std::string task_table(const TaskReport& report, std::span<const CacheComparison> comparisons) {
  HtmlTable table{
      .caption = asked_text(report), .header = {"cache", "difference"}, .rows = {}, .names = 2};
  if (report.accepts()) {
    table.header.emplace_back("test");
    table.names = 3;
  }
  table.header.emplace_back("items");
  table.header.insert(table.header.end(), report.scores.begin(), report.scores.end());
  for (const char* name : {"wins", "losses", "ties", "p", "recovery"}) {
    table.header.emplace_back(name);
  }
  if (report.generates) {
    table.header.insert(table.header.end(), {"same text", "differs at", "KLD until there"});
  }
  table.rows.push_back(baseline_row(report, table.header.size()));
  for (const CacheComparison& each : comparisons) {
    if (each.task == &report) table.rows.push_back(comparison_row(each));
  }
  return element("h3", "", escape_html(task_title(report))) + "\n" + html_table(table);
}

std::string standing_note(std::span<const CacheComparison> comparisons) {
  const uint64_t m = corrected_for(comparisons);
  std::string text =
      "A win is an item that the cache has right and the baseline wrong, a loss the reverse. p is "
      "how often a fair coin would part them as unevenly (McNemar's exact test), for one "
      "comparison alone.";
  if (m > 0) {
    const std::string corrected =
        m == 1 ? ""
               : cat(" after the correction for ", grouped(m), " comparisons by Holm's method");
    text += cat(
        " “worse” and “better” mark a p below 5 %", corrected,
        ". If no cache differs from the baseline, at most one page in twenty has such a mark. “not "
        "shown” does not mean equal: the interval of recovery says how much worse or better the "
        "cache may be.");
  }
  if (m < comparisons.size()) {
    text +=
        " “stopped” means that the test of --accept ended the items early. p and the interval do "
        "not account for that; the test does.";
  }
  return paragraph(text);
}

}  // namespace fp8kv
