// Conditions under which an evaluation fails: "kld > 0.05", "saturated > 0".
#pragma once

#include <string>
#include <vector>

#include "eval/eval_report.h"
#include "eval/metrics.h"

namespace fp8kv {

enum class Comparison { less, less_equal, greater, greater_equal };

// A candidate fails when `value <comparison> bound` holds for any of its values, when a value is
// NaN, and when it has no value because it was not measured.
struct Gate {
  std::string text;  // as given
  const Metric* metric;
  Comparison comparison;
  double bound;
};

// METRIC OP NUMBER[%], blanks free; OP is <, <=, > or >=. Throws a usage Error that says what was
// expected, for an unknown metric with the list of them.
Gate parse_gate(const std::string& text);

// The set "default", which tells caches that work from broken ones, for any model and any text: so
// its limits are laxer than what FP8 costs a large model. What was measured is in docs/accuracy.md.
inline constexpr const char* kDefaultGates = "default";
struct DefaultGate {
  std::string text;
  std::string why;  // the limit is where it is
};
const std::vector<DefaultGate>& default_gates();

// One gate, or those of the set "default".
std::vector<Gate> parse_gates(const std::string& text);

// True for one gate or more that all ask for perplexity. A broken cache can have a lower one.
bool see_perplexity_alone(const std::vector<Gate>& gates);

struct GateResult {
  std::string candidate;
  std::string gate;
  std::string metric;
  bool failed = false;
  // The value that decided, the farthest on the wrong side: "kld is 0.0123 in layer 3 K".
  std::string finding;
};

GateResult check_gate(const CandidateReport& candidate, const Gate& gate);
// Every candidate against every gate, candidate by candidate.
std::vector<GateResult> check_gates(const EvalReport& report, const std::vector<Gate>& gates);

}  // namespace fp8kv
