// The metrics of a candidate's caches: the table behind --fail-if, its help and its page in docs.
// Judges nothing itself.
#pragma once

#include <string>
#include <vector>

#include "eval/eval_report.h"

namespace fp8kv {

// One value of a metric in a candidate, and its place: "layer 3 K", or "" for the whole.
struct MetricValue {
  std::string where;
  double value;
};

enum class Better { lower, higher };

struct Metric {
  std::string name;
  std::string unit;  // "nats", "share": a share may be written in per cent
  Better better;
  std::string summary;
  std::vector<MetricValue> (*values)(const CandidateReport& candidate);
};

const std::vector<Metric>& metrics();

// "lower" or "higher".
std::string better_name(Better better);

}  // namespace fp8kv
