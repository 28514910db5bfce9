// Gates: the conditions under which an evaluation fails, such as "kld > 0.05" or "saturated > 0".
#pragma once

#include <string>
#include <vector>

#include "eval/eval_report.h"
#include "eval/metrics.h"

namespace fp8kv {

enum class Comparison { less, less_equal, greater, greater_equal };

// A candidate fails if `value <comparison> bound` holds for any of its values, if a value is NaN,
// or if nothing was measured.
struct Gate {
  std::string text;  // as given
  const Metric* metric;
  Comparison comparison;
  double bound;
};

// Parses METRIC OP NUMBER[%], with optional blanks; OP is <, <=, > or >=. Throws a usage Error that
// says what was expected. For an unknown metric it lists all of them.
Gate parse_gate(const std::string& text);

// The set "default" tells working caches from broken ones, for any model and any text. So its
// limits are looser than the cost of FP8 in a large model. docs/accuracy.md has the measurements.
inline constexpr const char* kDefaultGates = "default";
struct DefaultGate {
  std::string text;
  std::string why;  // the reason for this limit
};
const std::vector<DefaultGate>& default_gates();

// Parses one gate, or expands the set "default".
std::vector<Gate> parse_gates(const std::string& text);

// Whether all gates ask for perplexity alone (and there is one). A broken cache can lower
// perplexity.
bool see_perplexity_alone(const std::vector<Gate>& gates);

struct GateResult {
  std::string candidate;
  std::string gate;
  std::string metric;
  bool failed = false;
  // The deciding value, the one farthest on the wrong side: "kld is 0.0123 in layer 3 K".
  std::string finding;
};

GateResult check_gate(const CandidateReport& candidate, const Gate& gate);
// Checks every candidate against every gate, candidate by candidate.
std::vector<GateResult> check_gates(const EvalReport& report, const std::vector<Gate>& gates);

}  // namespace fp8kv
