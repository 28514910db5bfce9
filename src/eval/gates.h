// Conditions under which an evaluation fails: "ppl_delta > 0.5%", "saturated > 0".
#pragma once

#include <string>
#include <vector>

#include "eval/eval_report.h"

namespace fp8kv {

// One value that a metric has in a candidate, and where: "layer 3 K", or "" for the whole.
struct MetricValue {
  std::string where;
  double value;
};

struct GateMetric {
  std::string name;
  std::string summary;
  std::vector<MetricValue> (*values)(const CandidateReport& candidate);
};

const std::vector<GateMetric>& gate_metrics();

enum class Comparison { less, less_equal, greater, greater_equal };

// A candidate fails when `value <comparison> bound` holds for any of its values, when a value is
// NaN, and when it has no value because it was not measured.
struct Gate {
  std::string text;  // as given
  const GateMetric* metric;
  Comparison comparison;
  double bound;
};

// METRIC OP NUMBER[%], blanks free; OP is <, <=, > or >=. Throws a usage Error that says what was
// expected, for an unknown metric with the list of them.
Gate parse_gate(const std::string& text);

struct GateResult {
  std::string candidate;
  std::string gate;
  bool failed = false;
  // The value that decided, the farthest on the wrong side: "kld is 0.0123 in layer 3 K".
  std::string finding;
};

// Every candidate against every gate, candidate by candidate.
std::vector<GateResult> check_gates(const EvalReport& report, const std::vector<Gate>& gates);

// A JUnit document with one test case for each result, for continuous integration.
std::string junit_text(const EvalReport& report, const std::vector<GateResult>& results);

}  // namespace fp8kv
