// What a candidate's caches can be judged by: the table that --fail-if, its help and its page in
// docs are made of. Judges nothing itself.
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
