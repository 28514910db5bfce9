// What each runtime does with a folder or scale file: a table of rules over the facts of its files.
// A rule repeats what a run of the runtime's own loader showed, what its source says, or what its
// issues report. tests/runtimes/observed.json holds what was seen; no rule may say otherwise.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scales/rules/runtime_facts.h"
#include "scales/rules/runtime_rule.h"

namespace fp8kv {

// One runtime, in one range of versions in which it always did the same. Of its runtime's rules for
// that version the first that holds decides, and every note that holds is added; the last that is
// no note holds always.
struct RuntimeColumn {
  const char* runtime;  // "vLLM"
  const char* oldest;   // "0.15"; "" where it is not known
  const char* newest;   // "0.16"; "" for the newest of all
  RuntimeVersion first;
  std::span<const RuntimeRule> rules;  // of all versions
  const char* key = "";                // of a branch or a backend, which has no version: "pytorch"
};

// From the oldest version of `first` to the newest of `last`: "0.15 to 0.20", "0.25 and newer",
// "all versions".
std::string versions_text(const RuntimeColumn& first, const RuntimeColumn& last);
std::string versions_text(const RuntimeColumn& column);
// The same without versions that do not know the model of these facts: "0.8.4 and newer".
std::string versions_text(const RuntimeColumn& first, const RuntimeColumn& last, FactSet facts);

std::span<const RuntimeColumn> runtime_columns();
// Those of one column, in order.
std::vector<const RuntimeRule*> rules_of(const RuntimeColumn& column);

struct RuntimeVerdict {
  const RuntimeColumn* column;
  const RuntimeRule* rule;
  std::vector<const RuntimeRule*> notes;
};

// Whether it has the model of these facts: in the newest of its versions, or in `version` where it
// is given. True where that is not known.
bool knows_model(FactSet facts, const RuntimeColumn& column,
                 std::optional<RuntimeVersion> version = std::nullopt);

// A model that the runtime does not know in any of the column's versions, or in `version` where it
// is given, loads no scales, whatever the rules say.
RuntimeVerdict runtime_verdict(FactSet facts, const RuntimeColumn& column,
                               std::optional<RuntimeVersion> version = std::nullopt);
// One per column, in the table's order.
std::vector<RuntimeVerdict> runtime_verdicts(FactSet facts);

// The column that this version is in, or else follows. `runtime` as a column spells it; nullptr for
// one of no column.
const RuntimeColumn* find_runtime_column(std::string_view runtime, RuntimeVersion version);
// Of that column, in this version.
std::optional<RuntimeVerdict> runtime_verdict(FactSet facts, std::string_view runtime,
                                              RuntimeVersion version);

}  // namespace fp8kv
