// Measures the cost of each layer's cache on its own, in each format.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "fit/fit_report.h"
#include "fit/measure_caches.h"

namespace fp8kv {

struct CostOptions {
  int threads = 0;
  // The bytes for residual streams, which bound the candidates of one pass.
  uint64_t stream_bytes = uint64_t{1} << 30;
  KeptMeasurements* kept = nullptr;  // see MeasureOptions
};

// Returns the costs of each format, in order. A change in one layer runs through the layers above
// it and the head. All candidates share one pass over the weights, or as few passes as stream_bytes
// allows. On average a layer costs half a pass and one row of logits per token. `saved` stays 0.
// The results have the same bits for any number of threads and passes.
// REQUIRES a window of two tokens or more, and a layer with a cache.
std::vector<FormatCosts> layer_costs(const ModelOnBackend& model,
                                     const std::vector<std::vector<int32_t>>& windows,
                                     const std::vector<FitFormat>& formats,
                                     const CostOptions& options, Log& log);

}  // namespace fp8kv
