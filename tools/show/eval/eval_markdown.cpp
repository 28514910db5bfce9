#include "show/eval/eval_markdown.h"

#include <vector>

#include "base/text.h"
#include "report/serving.h"
#include "report/verdict.h"
#include "show/eval/eval_summary.h"
#include "show/eval/needle_text.h"
#include "show/eval/task_text.h"
#include "show/markdown.h"

namespace fp8kv {
namespace {

std::string title(const std::string& model) {
  return cat("### fp8kv eval ", markdown_text(model), "\n\n");
}

std::string checks_table(std::span<const GateResult> gates) {
  if (gates.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"check", "cache", "outcome", "found"}};
  for (const GateResult& each : gates) {
    rows.push_back({each.gate, each.candidate, each.failed ? "failed" : "passed", each.finding});
  }
  return markdown_table(rows, {true, true, true, true});
}

}  // namespace

std::string eval_markdown(const EvalReport& report, std::span<const GateResult> gates) {
  const std::vector<std::string> verdict = verdict_text(report).lines;
  std::string text = title(report.model);
  if (!verdict.empty()) text += cat("**", markdown_text(verdict[0]), "**\n\n");
  text += eval_table(report).markdown();
  if (verdict.size() > 1) text += markdown_list(std::span(verdict).subspan(1));
  text += checks_table(gates);
  const Serving serving = serving_of(report);
  if (!serving.words.empty()) text += markdown_text(serving.words) + "\n\n";
  return text + markdown_commands(serving.commands);
}

std::string tasks_markdown(const std::string& model, std::span<const TaskReport> reports) {
  std::string text = title(model);
  for (const TaskReport& report : reports) {
    text += cat("#### ", markdown_text(task_words(report)), "\n\n");
    for (const TaskCacheReport& cache : report.caches) {
      text += cat("**", markdown_text(task_verdict(report, cache)), "**\n\n");
    }
    text += task_table(report).markdown();
    const std::string grids = needle_grids(report);
    if (!grids.empty()) text += cat("```\n", grids, "```\n\n");
  }
  return text;
}

}  // namespace fp8kv
