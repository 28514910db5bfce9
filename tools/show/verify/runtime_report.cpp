#include "show/verify/runtime_report.h"

#include <span>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "show/output.h"

namespace fp8kv {
namespace {

const char* basis_name(Basis basis) {
  switch (basis) {
    case Basis::code:
      return "its source";
    case Basis::reports:
      return "reports of users";
    case Basis::run:
      break;
  }
  return "a run";
}

void rule_json(JsonWriter& json, const RuntimeRule& rule) {
  json.member("sentence", rule.sentence).member("source", rule.source);
  json.member("basis", basis_name(rule.basis));
}

// Whether a row for other versions of the runtime would say the same.
bool is_the_same(const RuntimeVerdict& a, const RuntimeVerdict& b) {
  return a.column->runtime == std::string_view(b.column->runtime) && a.rule == b.rule &&
         a.notes == b.notes;
}

}  // namespace

std::string runtime_sources() {
  return sentence(
             "From runs of the runtimes' loaders, their sources and issues: see "
             "docs/runtimes.md.") +
         "\n";
}

std::string runtimes_table(FactSet facts) {
  Table table({"runtime", "version", "result", "how"}, {true, true, true, true}, 2);
  const std::vector<RuntimeVerdict> verdicts = runtime_verdicts(facts);
  for (size_t i = 0; i < verdicts.size();) {
    const RuntimeVerdict& verdict = verdicts[i];
    size_t end = i + 1;
    while (end < verdicts.size() && is_the_same(verdict, verdicts[end])) ++end;
    table.add({verdict.column->runtime, versions_text(*verdict.column, *verdicts[end - 1].column),
               rule_result(*verdict.rule), verdict.rule->sentence});
    for (const RuntimeRule* note : verdict.notes) {
      table.add({"", "", runtime_outcome_name(note->outcome), note->sentence});
    }
    i = end;
  }
  return table.text() + runtime_sources();
}

void verdict_json(JsonWriter& json, const RuntimeVerdict& verdict) {
  json.member("result", runtime_outcome_name(verdict.rule->outcome));
  json.member("rounded", verdict.rule->rounded);
  rule_json(json, *verdict.rule);
  json.key("notes").begin_array();
  for (const RuntimeRule* note : verdict.notes) {
    json.begin_object();
    rule_json(json, *note);
    json.end_object();
  }
  json.end_array();
}

void runtimes_json(JsonWriter& json, FactSet facts) {
  json.member("runtime_facts", std::span<const std::string>(facts.names()));
  json.key("runtimes").begin_array();
  for (const RuntimeVerdict& verdict : runtime_verdicts(facts)) {
    json.begin_object().member("runtime", verdict.column->runtime);
    json.member("versions", versions_text(*verdict.column));
    verdict_json(json, verdict);
    json.end_object();
  }
  json.end_array();
}

}  // namespace fp8kv
