// One rule: given facts and versions, what a runtime does with a folder.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "scales/rules/tables/fact.h"

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

// How the runtime treats scales on GPUs with FNUZ E4M3 (MI300), which need them twice as large.
enum class Doubling { unsaid, doubled, kept };

struct RuntimeVersion {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const RuntimeVersion&) const = default;
};

// Drops a trailing 0 behind the second number: "0.17", "0.5.19".
std::string runtime_version_text(RuntimeVersion version);

// "0.32", "0.32.0", "v5"; nullopt for anything else.
std::optional<RuntimeVersion> parse_runtime_version(std::string_view text);

struct RuntimeRule {
  FactSet with;     // all of these hold
  FactSet without;  // and none of these
  RuntimeOutcome outcome;
  const char* sentence;
  const char* source;  // file, commit, pull request or issue; or what was run
  Basis basis = Basis::code;
  FactSet any = {};         // and one of these, if it names any
  FamilySet families = {};  // the model belongs to one of these, if it names any
  FamilySet not_of = {};    // and to none of these
  bool rounded = false;     // the scales are rounded to the model's dtype on their way
  bool at_one = false;      // turns FP8 on without the folder's scales
  Doubling doubling = Doubling::unsaid;
  RuntimeVersion since = {};
  RuntimeVersion before = {std::numeric_limits<int>::max()};

  // Functions that return this rule with one more condition.
  constexpr RuntimeRule of(FamilySet only) const {
    RuntimeRule rule = *this;
    rule.families = only;
    return rule;
  }
  constexpr RuntimeRule except(FamilySet others) const {
    RuntimeRule rule = *this;
    rule.not_of = others;
    return rule;
  }
  constexpr RuntimeRule with_any(FactSet facts) const {
    RuntimeRule rule = *this;
    rule.any = facts;
    return rule;
  }
  constexpr RuntimeRule from(RuntimeVersion first) const {
    RuntimeRule rule = *this;
    rule.since = first;
    return rule;
  }
  constexpr RuntimeRule until(RuntimeVersion end) const {
    RuntimeRule rule = *this;
    rule.before = end;
    return rule;
  }
  constexpr RuntimeRule rounding() const {
    RuntimeRule rule = *this;
    rule.rounded = true;
    return rule;
  }
  constexpr RuntimeRule without_scales() const {
    RuntimeRule rule = *this;
    rule.at_one = true;
    return rule;
  }
  constexpr RuntimeRule doubles() const {
    RuntimeRule rule = *this;
    rule.doubling = Doubling::doubled;
    return rule;
  }
  constexpr RuntimeRule keeps() const {
    RuntimeRule rule = *this;
    rule.doubling = Doubling::kept;
    return rule;
  }
  constexpr RuntimeRule seen(const char* run) const {
    RuntimeRule rule = *this;
    rule.source = run;
    rule.basis = Basis::run;
    return rule;
  }
  // Whether the rule applies to a folder with these facts.
  constexpr bool holds(FactSet facts) const {
    const bool one_of = any == FactSet{} || facts.has_any(any);
    const bool of_family = families == FamilySet{} || families.has(facts.family());
    return facts.has_all(with) && !facts.has_any(without) && one_of && of_family &&
           !not_of.has(facts.family());
  }
  constexpr bool is_of(RuntimeVersion version) const {
    return since <= version && version < before;
  }
};

// Whether the runtime uses the folder's scales, exactly or rounded.
bool uses_scales(const RuntimeRule& rule);

// "loads", "loads, rounded", "turns FP8 on, ignores".
std::string rule_result(const RuntimeRule& rule);

}  // namespace fp8kv
