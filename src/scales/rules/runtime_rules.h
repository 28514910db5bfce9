// A table of rules: what each runtime does with a folder or scale file, given the facts of its
// files. A rule repeats what a run of the runtime's own loader showed, what its source says, or
// what its issues report. tests/runtimes/observed.json records the runs; no rule may contradict
// them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scales/rules/runtime_facts.h"
#include "scales/rules/tables/runtime_rule.h"

namespace fp8kv {

// One runtime over a range of versions that behave alike. The first rule that holds for the version
// decides, and every note that holds is added. The last rule that is no note always holds.
struct RuntimeColumn {
  const char* runtime;  // "vLLM"
  const char* oldest;   // "0.15"; "" if unknown
  const char* newest;   // "0.16"; "" if the range is open
  RuntimeVersion first;
  std::span<const RuntimeRule> rules;  // for every version of the runtime
  const char* key = "";                // names a branch or backend, which has no version: "pytorch"
};

// From the oldest version of `first` to the newest of `last`: "0.15 to 0.20", "0.25 and newer",
// "all versions".
std::string versions_text(const RuntimeColumn& first, const RuntimeColumn& last);
std::string versions_text(const RuntimeColumn& column);
// Leaves out versions that do not know the model of these facts: "0.8.4 and newer".
std::string versions_text(const RuntimeColumn& first, const RuntimeColumn& last, FactSet facts);

std::span<const RuntimeColumn> runtime_columns();
// The rules of one column, in order.
std::vector<const RuntimeRule*> rules_of(const RuntimeColumn& column);

struct RuntimeVerdict {
  const RuntimeColumn* column;
  const RuntimeRule* rule;
  std::vector<const RuntimeRule*> notes;
};

// Whether the column's newest version, or `version` if given, knows the model of these facts.
// Returns true if that is unknown.
bool knows_model(FactSet facts, const RuntimeColumn& column,
                 std::optional<RuntimeVersion> version = std::nullopt);

// The verdict for the column, or for `version` if given. If no such version knows the model, it
// loads no scales, whatever the rules say.
RuntimeVerdict runtime_verdict(FactSet facts, const RuntimeColumn& column,
                               std::optional<RuntimeVersion> version = std::nullopt);
// One per column, in the table's order.
std::vector<RuntimeVerdict> runtime_verdicts(FactSet facts);

// The column that contains this version, or the last one before it. `runtime` is spelled as in a
// column. Returns nullptr if no column fits.
const RuntimeColumn* find_runtime_column(std::string_view runtime, RuntimeVersion version);
// The verdict of that column in this version.
std::optional<RuntimeVerdict> runtime_verdict(FactSet facts, std::string_view runtime,
                                              RuntimeVersion version);

}  // namespace fp8kv
