// The behaviour of each runtime with a folder or scale file, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"
#include "scales/rules/runtime_rules.h"

namespace fp8kv {

// The table of all runtimes and versions.
std::string runtimes_table(FactSet facts);

// The newest versions of each runtime, in about ten lines. `more` names the flag that shows the
// others: "--all".
std::string runtimes_summary(FactSet facts, const std::string& more);

// The last line of such a table, which names its sources.
std::string runtime_sources();

// One runtime in the summary.
struct RuntimeLine {
  std::string runtime;  // "vLLM 0.15+"
  std::string result;   // "exact, FP8 on"
  std::string how;
  std::vector<const RuntimeRule*> notes = {};
};

// One row for each line. Below them comes every note once, with the runtimes that it applies to.
std::string runtime_lines(const std::vector<RuntimeLine>& lines, const std::string& more);

// Whether the column has the newest versions of a runtime. False for branches and backends.
bool has_newest(const RuntimeColumn& column);
// "vLLM 0.15+". REQUIRES two columns of one runtime, `last` with the newest versions.
std::string newest_text(const RuntimeColumn& first, const RuntimeColumn& last);

// Adds the member "runtimes" (an array) and "runtime_facts".
void runtimes_json(JsonWriter& json, FactSet facts);
// The members "result", "rounded", "sentence", "source", "basis" and "notes".
void verdict_json(JsonWriter& json, const RuntimeVerdict& verdict);

}  // namespace fp8kv
