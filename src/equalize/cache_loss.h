// The loss of a cache on a text: the divergence from a cache in the model's own dtype. Measures the
// cache that the model is equalised for, and FP8 for comparison.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "core/cache/kv_format.h"
#include "core/model/config.h"
#include "policy/magnitudes.h"

namespace fp8kv {

struct CacheLoss {
  std::string cache;  // "int8_per_token_head K", "fp8_e4m3 amax"
  double kld = 0;     // mean of KL(16 bit || this) over tokens, in nats
  double error = 0;   // its standard error, over parts of the text
};

struct LossOptions {
  KvFormat format = KvFormat::int8_per_token_head;
  int threads = 0;
};

// Measures K alone in the format (unless it has stored scales), then K and V in it, then K and V in
// FP8 with scales of amax. `magnitudes`: those of this model, for the scales. REQUIRES a window of
// two tokens or more.
std::vector<CacheLoss> cache_losses(const ModelOnBackend& model,
                                    const std::vector<std::vector<int32_t>>& windows,
                                    const std::vector<LayerMagnitudes>& magnitudes,
                                    const LossOptions& options, Log& log);

}  // namespace fp8kv
