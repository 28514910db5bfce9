#include "show/verify/runtime_report.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
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

// Whether two versions of one runtime would have the same row.
bool is_the_same(const RuntimeVerdict& a, const RuntimeVerdict& b) {
  return a.column->runtime == std::string_view(b.column->runtime) && a.rule == b.rule &&
         a.notes == b.notes;
}

// Neighbouring columns of one runtime with the same verdict.
struct Alike {
  RuntimeVerdict first;
  RuntimeVerdict last;
};

std::vector<Alike> alike_rows(const std::vector<RuntimeVerdict>& verdicts) {
  std::vector<Alike> rows;
  for (const RuntimeVerdict& each : verdicts) {
    if (!rows.empty() && is_the_same(rows.back().last, each)) {
      rows.back().last = each;
    } else {
      rows.push_back({each, each});
    }
  }
  return rows;
}

}  // namespace

std::string runtime_sources() {
  return sentence(
             "From runs of the runtimes' loaders, their sources and issues: see "
             "docs/runtimes.md.") +
         "\n";
}

bool has_newest(const RuntimeColumn& column) {
  return *column.newest == '\0' && *column.key == '\0';
}

std::string newest_text(const RuntimeColumn& first, const RuntimeColumn& last) {
  FP8KV_ASSERT(has_newest(last));
  return cat(first.runtime, " ", *first.oldest == '\0' ? "" : cat(first.oldest, "+"));
}

std::string runtime_lines(const std::vector<RuntimeLine>& lines, const std::string& more) {
  Table table({"runtime", "scales", "how"}, {true, true, true});
  std::vector<std::pair<std::string, std::vector<std::string>>> notes;
  for (const RuntimeLine& line : lines) {
    table.add({line.runtime, line.result, line.how});
    for (const RuntimeRule* note : line.notes) {
      const auto said = std::find_if(notes.begin(), notes.end(), [&](const auto& each) {
        return each.first == note->sentence;
      });
      auto& of = said == notes.end()
                     ? notes.emplace_back(note->sentence, std::vector<std::string>())
                     : *said;
      of.second.push_back(line.runtime.substr(0, line.runtime.find(' ')));
    }
  }
  std::string text = table.text();
  for (const auto& [note, runtimes] : notes) {
    text += noted("note", cat(join(runtimes), ": ", note));
  }
  return text + noted("more", cat("older versions and other runtimes: ", more,
                                  "; sources: docs/runtimes.md"));
}

std::string runtimes_summary(FactSet facts, const std::string& more) {
  std::vector<RuntimeLine> lines;
  for (const Alike& row : alike_rows(runtime_verdicts(facts))) {
    if (!has_newest(*row.last.column)) continue;
    lines.push_back({newest_text(*row.first.column, *row.last.column), rule_result(*row.first.rule),
                     row.first.rule->sentence, row.first.notes});
  }
  return runtime_lines(lines, more);
}

std::string runtimes_table(FactSet facts) {
  Table table({"runtime", "version", "result", "how"}, {true, true, true, true}, 2);
  for (const Alike& row : alike_rows(runtime_verdicts(facts))) {
    table.add({row.first.column->runtime, versions_text(*row.first.column, *row.last.column),
               rule_result(*row.first.rule), row.first.rule->sentence});
    for (const RuntimeRule* note : row.first.notes) {
      table.add({"", "", runtime_outcome_name(note->outcome), note->sentence});
    }
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
