// The loss of a cache on a text: the divergence from the model's own dtype, for the cache that a
// model is equalised for and for FP8 beside it.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "core/kv_format.h"
#include "policy/magnitudes.h"

namespace fp8kv {

struct CacheLoss {
  std::string cache;  // "int8_per_token_head K", "fp8_e4m3 amax"
  double kld = 0;     // mean of KL(16 bit || this) over tokens, in nats
  double error = 0;   // standard error of it, over parts of the text
};

struct LossOptions {
  KvFormat format = KvFormat::int8_per_token_head;
  int threads = 0;
};

// In this order: K alone in the format, unless it has stored scales; K and V in it; and K and V in
// FP8 with scales of amax.
// `magnitudes`: of this model, for the scales. REQUIRES a window of two tokens or more.
std::vector<CacheLoss> cache_losses(const Checkpoint& checkpoint, const ModelConfig& config,
                                    Backend& backend,
                                    const std::vector<std::vector<int32_t>>& windows,
                                    const std::vector<LayerMagnitudes>& magnitudes,
                                    const LossOptions& options, Log& log);

}  // namespace fp8kv
