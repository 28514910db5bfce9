// Computes log probabilities of texts locally, with several caches side by side. Activations and
// logits are rounded to the model's dtype after every op, like in a runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "backend/rounding_backend.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "eval/multi_cache_run.h"
#include "model/weights/weight_loader.h"

namespace fp8kv {

using TokenWindows = std::vector<std::vector<int32_t>>;

class Predictor {
 public:
  // `threads` as in MultiCacheRun. REQUIRES checkpoint, config and backend to outlive this object.
  Predictor(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend, int threads);

  // Natural log probabilities of the tokens after the first, window after window. Lanes whose
  // caches read back the same values share their results bit for bit. Reads the weights once.
  // [lanes][predictions]
  std::vector<std::vector<double>> log_probs(const TokenWindows& windows,
                                             const std::vector<Lane>& lanes, Progress& progress);

  // The number of times that log_probs() advances its progress for these windows.
  uint64_t steps(const TokenWindows& windows) const;

 private:
  Backend& rounding(Backend& backend);
  std::vector<std::vector<double>> of_streams(MultiCacheRun& caches, const TokenWindows& windows,
                                              Progress& progress);

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  std::optional<RoundingBackend> rounding_;  // absent if `backend_` rounds by itself
  Backend& backend_;
  int threads_;
  WeightLoader loader_;
};

}  // namespace fp8kv
