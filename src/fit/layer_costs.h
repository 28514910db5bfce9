// Measures the cost of each layer's cache alone, in each format.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "fit/fit_report.h"

namespace fp8kv {

struct CostOptions {
  int threads = 0;
  // Residual streams take so many bytes at once, which bounds the candidates of one pass.
  uint64_t stream_bytes = uint64_t{1} << 30;
};

// Costs of each format, in order. A layer's change is carried through the layers above it and the
// head, all candidates in one pass over the weights, or as few as stream_bytes allows. So a layer
// costs half a pass on average, and a row of logits for each token. `saved` is left 0.
// The results have the same bits for any number of threads and passes.
// REQUIRES a window of two tokens or more, and a layer with a cache.
std::vector<FormatCosts> layer_costs(const Checkpoint& checkpoint, const ModelConfig& config,
                                     Backend& backend,
                                     const std::vector<std::vector<int32_t>>& windows,
                                     const std::vector<FitFormat>& formats,
                                     const CostOptions& options, Log& log);

}  // namespace fp8kv
