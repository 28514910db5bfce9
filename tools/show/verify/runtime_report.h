// What each runtime will do with a folder or scale file, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"
#include "scales/rules/runtime_rules.h"

namespace fp8kv {

// Every runtime and version.
std::string runtimes_table(FactSet facts);

// The newest versions of each runtime, in some ten lines. `more` says where the others are:
// "--all".
std::string runtimes_summary(FactSet facts, const std::string& more);

// The source of such a table: its last line.
std::string runtime_sources();

// One runtime in the summary.
struct RuntimeLine {
  std::string runtime;  // "vLLM 0.15+"
  std::string result;   // "exact, FP8 on"
  std::string how;
  std::vector<const RuntimeRule*> notes = {};
};

// A row for each, then every note once, with the runtimes that it is about.
std::string runtime_lines(const std::vector<RuntimeLine>& lines, const std::string& more);

// Whether the column has the newest versions of a runtime; never for a branch or a backend.
bool has_newest(const RuntimeColumn& column);
// "vLLM 0.15+": both of one runtime, `last` with its newest versions.
std::string newest_text(const RuntimeColumn& first, const RuntimeColumn& last);

// Adds the member "runtimes" (an array) and "runtime_facts".
void runtimes_json(JsonWriter& json, FactSet facts);
// The members "result", "rounded", "sentence", "source", "basis" and "notes".
void verdict_json(JsonWriter& json, const RuntimeVerdict& verdict);

}  // namespace fp8kv
