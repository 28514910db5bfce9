// The measurements and the choice of a fit: plain values, shown by whoever wants to.
// A choice is one cache format for the whole model, of which some layers are left in 16 bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cache_type.h"
#include "core/scales.h"
#include "eval/eval_report.h"

namespace fp8kv {

// A cache format that a choice may have.
struct FitFormat {
  std::string name;  // "fp8_e4m3": the canonical name, unique in a report
  CacheType type;
  std::optional<KvScales> scales = {};  // in the format of `type`; absent where it takes none
  // Layers that the runtime itself leaves in 16 bit in this format, rising.
  std::vector<int64_t> always_left = {};
};

// The cost of one layer alone in a format: every other layer is in 16 bit.
struct LayerCost {
  int64_t layer = 0;
  double kld = 0;  // mean of KL(16 bit || this) over tokens, in nats
  double error = 0;
  uint64_t saved = 0;  // bytes that the format takes less than 16 bit, in the unit of the budget
};

// The costs of a format on the text that choices are made on.
struct FormatCosts {
  std::vector<LayerCost> layers;  // in the order of the model; without always_left
  double all_kld = 0;             // of all layers together, measured: costs do not add up
  double all_error = 0;
};

struct FitPoint {
  size_t format = 0;          // in FitReport::formats
  std::vector<int64_t> left;  // layers in 16 bit, rising; always_left is among them
  uint64_t bytes = 0;         // in the unit of the budget
  uint64_t bytes_per_token = 0;
  double predicted = 0;  // KLD, from the costs

  bool operator==(const FitPoint&) const = default;
};

// A point as it was measured, on text that no choice was made on.
struct ConfirmedPoint {
  FitPoint point;
  TokenFigures total;
  std::vector<PartSums> parts;
};

// A choice has to keep it. One of the two is given.
struct FitBudget {
  std::optional<double> max_kld;       // met where the KLD is below it by two standard errors
  std::optional<uint64_t> most_bytes;  // in the unit of the budget
};

struct FitReport {
  std::vector<FitFormat> formats;
  FitBudget budget;
  uint64_t choosing_tokens = 0;    // that scales and uniform caches saw
  uint64_t cost_tokens = 0;        // that the layers' costs were measured on, some of those
  uint64_t confirming_tokens = 0;  // held out
  std::vector<FormatCosts> costs;  // [formats]
  TokenFigures baseline;           // the 16-bit cache on the held-out text
  uint64_t baseline_bytes = 0;     // in the unit of the budget
  uint64_t baseline_bytes_per_token = 0;
  std::vector<ConfirmedPoint> points;  // in rising order of bytes, then KLD
  std::optional<size_t> chosen;        // in `points`; absent where none meets the budget
};

}  // namespace fp8kv
