#include "base/error.h"
#include "commands/commands.h"
#include "commands/verify_with.h"
#include "inputs/runtime_source.h"
#include "json/json.h"
#include "scales/rules/runtime_choice.h"
#include "show/output.h"
#include "show/runtime_report.h"

namespace fp8kv {
namespace {

std::vector<ChosenRuntime> chosen_runtimes(const VerifyOptions& options) {
  if (options.runtimes.empty()) return usual_runtimes();
  std::vector<ChosenRuntime> chosen;
  for (const std::string& text : options.runtimes) {
    const auto more = with_context("--runtime", [&] { return choose_runtimes(text); });
    chosen.insert(chosen.end(), more.begin(), more.end());
  }
  return chosen;
}

bool uses(const RuntimeRule& rule) {
  return rule.outcome == RuntimeOutcome::loads || rule.outcome == RuntimeOutcome::turns_on;
}

}  // namespace

void run_command(const VerifyOptions& options) {
  if (!options.with.empty()) return verify_with(options);
  const std::vector<ChosenRuntime> chosen = chosen_runtimes(options);
  const FactSet facts = facts_of(options.path);
  if (options.json) {
    JsonWriter json;
    json.begin_object()
        .member("schema", "fp8kv.verify/1")
        .member("path", utf8_name(options.path.string()));
    runtimes_json(json, facts);
    print(json.end_object().text());
  } else {
    print(runtimes_table(facts));
  }
  std::vector<std::string> lost;
  for (const ChosenRuntime& each : chosen) {
    const RuntimeVerdict verdict = runtime_verdict(facts, *each.column);
    if (!uses(*verdict.rule)) lost.push_back(cat(runtime_text(each), ": ", verdict.rule->sentence));
  }
  if (lost.empty()) return;
  throw Error(cat("not every scale arrives: ", join(lost, "; ")), "", ErrorKind::check);
}

}  // namespace fp8kv
