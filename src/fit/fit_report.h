// The measurements and the choice of a fit, as plain values. A choice is one cache format for the
// whole model, with some layers left in 16 bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cache/cache_type.h"
#include "core/scales/scales.h"
#include "eval/eval_report.h"

namespace fp8kv {

// A cache format that can be chosen.
struct FitFormat {
  std::string name;  // "fp8_e4m3": the canonical name, unique in a report
  CacheType type;
  std::optional<KvScales> scales = {};  // in the format of `type`; absent if it takes none
  // Layers that the runtime itself leaves in 16 bit in this format, ascending.
  std::vector<int64_t> always_left = {};
};

// The cost of a format in one layer, with every other layer in 16 bit.
struct LayerCost {
  int64_t layer = 0;
  double kld = 0;  // mean of KL(16 bit || this) over tokens, in nats
  double error = 0;
  uint64_t saved = 0;  // bytes saved against 16 bit, in the unit of the budget
};

// The costs of a format on the text that choices are based on.
struct FormatCosts {
  std::vector<LayerCost> layers;  // in model order, without always_left
  double all_kld = 0;             // measured with all layers together, since costs do not add up
  double all_error = 0;
};

struct FitPoint {
  size_t format = 0;          // format index in FitReport::formats
  std::vector<int64_t> left;  // layers in 16 bit, ascending, with always_left
  uint64_t bytes = 0;         // in the unit of the budget
  uint64_t bytes_per_token = 0;
  double predicted = 0;  // KLD, predicted from the costs

  bool operator==(const FitPoint&) const = default;
};

// A point as measured on held-out text.
struct ConfirmedPoint {
  FitPoint point;
  TokenFigures total;
  std::vector<PartSums> parts;
};

// The limit that a choice has to keep. Exactly one of the two is given.
struct FitBudget {
  std::optional<double> max_kld;       // kept if the KLD is below it by two standard errors
  std::optional<uint64_t> most_bytes;  // in the unit of the budget
};

struct FitReport {
  std::vector<FitFormat> formats;
  FitBudget budget;
  uint64_t choosing_tokens = 0;  // tokens that scales and uniform caches were made from
  uint64_t cost_tokens = 0;  // some of the choosing tokens: the layers' costs were measured on them
  uint64_t confirming_tokens = 0;  // held out
  std::vector<FormatCosts> costs;  // [formats]
  TokenFigures baseline;           // the 16-bit cache on the held-out text
  uint64_t baseline_bytes = 0;     // in the unit of the budget
  uint64_t baseline_bytes_per_token = 0;
  std::vector<ConfirmedPoint> points;  // ascending by bytes, then by KLD
  std::optional<size_t> chosen;        // index in `points`; absent if none meets the budget
};

}  // namespace fp8kv
