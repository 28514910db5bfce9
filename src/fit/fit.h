// The smallest cache that keeps a bound of the loss, or the best cache that keeps a bound of bytes:
// one format for the model, with the layers that cost most left in 16 bit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/cache_type.h"
#include "core/config.h"
#include "data/dataset.h"
#include "fit/fit_report.h"

namespace fp8kv {

struct FitText {
  WindowIds costs;    // the costs of layers are measured on these
  WindowIds confirm;  // held out
};

struct FitOptions {
  bool mixes = true;  // the runtime can leave layers in 16 bit
  // The bytes of a cache in the unit of the budget: of a token, or of a sequence.
  std::function<uint64_t(const ModelCache&)> bytes;
  int threads = 0;
};

// Measures the costs of the layers, and then, on held-out text, choices that FitSearch asks for.
// REQUIRES formats and budget in `report`; fills in the rest but for choosing_tokens. Every window
// has two tokens or more.
void fit(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
         const FitText& text, const FitOptions& options, FitReport& report, Log& log);

}  // namespace fp8kv
