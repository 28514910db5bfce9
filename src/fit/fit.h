// Finds the smallest cache within a bound of the loss, or the best cache within a bound of bytes.
// The result is one format for the model, with the costliest layers left in 16 bit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "core/cache/cache_type.h"
#include "core/model/config.h"
#include "data/dataset.h"
#include "fit/fit_report.h"
#include "fit/measure_caches.h"

namespace fp8kv {

struct FitText {
  WindowIds costs;    // for the costs of layers
  WindowIds confirm;  // held out, for measuring the choices
};

struct FitOptions {
  bool mixes = true;  // the runtime can leave layers in 16 bit
  // The size of a cache in the unit of the budget: bytes per token, or per sequence.
  std::function<uint64_t(const ModelCache&)> bytes;
  int threads = 0;
  KeptMeasurements* kept = nullptr;  // see MeasureOptions
};

// Measures the costs of the layers, and then the choices that FitSearch asks for, on held-out text.
// Fills in `report`, except for choosing_tokens. REQUIRES formats and budget in `report`, and two
// tokens or more in every window.
void fit(const ModelOnBackend& model, const FitText& text, const FitOptions& options,
         FitReport& report, Log& log);

}  // namespace fp8kv
