#include "show/runtime_report.h"

#include <span>
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

}  // namespace

std::string runtimes_table(FactSet facts) {
  Table table({"runtime", "version", "result", "how"}, {true, true, true, true});
  for (const RuntimeVerdict& verdict : runtime_verdicts(facts)) {
    table.add({verdict.column->runtime, verdict.column->versions,
               runtime_outcome_name(verdict.rule->outcome), verdict.rule->sentence});
    for (const RuntimeRule* note : verdict.notes) {
      table.add({"", "", runtime_outcome_name(note->outcome), note->sentence});
    }
  }
  return table.text() +
         "From reading each runtime's source and issues; transformers alone was run.\n";
}

void runtimes_json(JsonWriter& json, FactSet facts) {
  json.member("runtime_facts", std::span<const std::string>(facts.names()));
  json.key("runtimes").begin_array();
  for (const RuntimeVerdict& verdict : runtime_verdicts(facts)) {
    json.begin_object().member("runtime", verdict.column->runtime);
    json.member("versions", verdict.column->versions);
    json.member("result", runtime_outcome_name(verdict.rule->outcome));
    rule_json(json, *verdict.rule);
    json.key("notes").begin_array();
    for (const RuntimeRule* note : verdict.notes) {
      json.begin_object();
      rule_json(json, *note);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

}  // namespace fp8kv
