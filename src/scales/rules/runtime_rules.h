// What each runtime does with a folder or scale file: a table of rules over the facts of its files.
// A rule repeats what the runtime's source says, or its issues report; where it was run, the rule
// says with which versions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "scales/rules/runtime_facts.h"

namespace fp8kv {

enum class RuntimeOutcome {
  loads,     // uses the scales when asked for an FP8 cache
  turns_on,  // uses them, and an FP8 cache without being asked
  ignores,   // runs, with scales of 1 where the cache is FP8
  misreads,  // runs with other scales than these
  fails,     // stops with an error
  unknown,   // not looked at
  note       // besides the outcome: a side effect
};

const char* runtime_outcome_name(RuntimeOutcome outcome);  // for people: "turns FP8 on"

enum class Basis { code, reports, run };

struct RuntimeRule {
  FactSet with;     // all of these hold
  FactSet without;  // and none of these
  RuntimeOutcome outcome;
  const char* sentence;
  const char* source;  // file, commit, pull request or issue
  Basis basis = Basis::code;
};

// One runtime, in one range of versions. Of its rules the first that holds decides, and every note
// that holds is added; the last that is no note holds always.
struct RuntimeColumn {
  const char* runtime;   // "vLLM"
  const char* versions;  // "0.7.2 to 0.10"
  std::span<const RuntimeRule> rules;
};

std::span<const RuntimeColumn> runtime_columns();

struct RuntimeVerdict {
  const RuntimeColumn* column;
  const RuntimeRule* rule;
  std::vector<const RuntimeRule*> notes;
};

// One per column, in the table's order.
std::vector<RuntimeVerdict> runtime_verdicts(FactSet facts);

}  // namespace fp8kv
