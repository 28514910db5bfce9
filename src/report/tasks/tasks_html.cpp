#include "report/tasks/tasks_html.h"

#include <algorithm>

#include "base/text.h"
#include "draw/html.h"
#include "report/pages/page_parts.h"
#include "report/tasks/answers_html.h"
#include "report/tasks/needle_html.h"
#include "report/tasks/recovery_figure.h"
#include "report/tasks/standings.h"
#include "report/tasks/task_tables.h"
#include "report/tasks/task_verdict.h"

namespace fp8kv {
namespace {

// Texts of more caches start folded.
constexpr size_t kFewCaches = 4;

// The parts of every task, one after the other.
std::string for_tasks(std::span<const TaskReport> reports,
                      std::string (*part)(const TaskReport& report)) {
  std::string out;
  for (const TaskReport& report : reports) out += part(report);
  return out;
}

bool few_caches(std::span<const TaskReport> reports) {
  return std::ranges::all_of(
      reports, [](const TaskReport& report) { return report.caches.size() <= kFewCaches; });
}

std::string texts_part(std::span<const TaskReport> reports) {
  const std::string texts = for_tasks(reports, parted_texts);
  if (texts.empty()) return "";
  return paragraph(
             "Items that only one of the two caches got right. The grey text is the same in both; "
             "the mark is on the first word that differs.") +
         folded("The texts", texts, few_caches(reports));
}

std::string choices_part(std::span<const TaskReport> reports) {
  const std::string choices = for_tasks(reports, flipped_choices);
  if (choices.empty()) return "";
  return paragraph(
             "Items that a cache and the baseline did not both get right or both wrong, with the "
             "choice of every cache.") +
         choices;
}

std::string task_text(const TaskReport& report) {
  return cat(report.task, "=", report.file, " (", report.form, "), ", report.few_shot, "-shot, ",
             grouped(report.items.size()), " of ", count_of(report.there, "item"),
             report.accepts() ? ", in random order until the test of --accept \"" +
                                    report.acceptance + "\" decides"
                              : "");
}

std::string origin_list(std::span<const TaskReport> reports, const TasksPageFacts& facts) {
  std::string list;
  add_item(list, "Model", facts.model);
  add_item(list, "Fingerprint", facts.fingerprint);
  for (const TaskReport& report : reports) add_item(list, "Task", task_text(report));
  if (!reports.empty()) add_item(list, "Baseline", reports[0].baseline.name);
  add_item(list, "Scales", facts.scales);
  add_item(list, "Files", files_text(facts.files));
  add_item(list, "Text for scales", files_text(facts.scale_text));
  add_item(list, "Device", facts.device);
  add_item(list, "Date", facts.date);
  add_item(list, "Tool", facts.tool_version.empty() ? "" : "fp8kv " + facts.tool_version);
  return definition_list(list);
}

}  // namespace

std::string tasks_html(std::span<const TaskReport> reports, const TasksPageFacts& facts) {
  const std::string name = last_part(facts.model);
  const std::vector<CacheComparison> comparisons = compare_all(reports);
  const TaskVerdict verdict = task_verdict(reports, comparisons);
  std::string tables;
  for (const TaskReport& report : reports) tables += task_table(report, comparisons);
  std::string body = page_head({.kind = "What the KV cache costs on tasks",
                                .name = name,
                                .date = facts.date,
                                .tool_version = facts.tool_version});
  body += verdict_box(verdict.css_class, verdict.lines);
  body += section("recovery", "How much of the baseline's score is kept",
                  recovery_figure(reports, comparisons));
  body += section("tasks", "The tasks", tables + standing_note(comparisons));
  body += section("needles", "Which numbers were found", for_tasks(reports, needle_pictures));
  body += section("texts", "Where texts part", texts_part(reports));
  body += section("choices", "Choices that flipped", choices_part(reports));
  body += section("provenance", "Where these numbers come from", origin_list(reports, facts));
  return html_page(cat("KV cache on tasks: ", name), body);
}

}  // namespace fp8kv
