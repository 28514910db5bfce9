// Greedy text of the baseline, as windows to hold other caches against.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"

namespace fp8kv {

// A prompt and the baseline's greedy continuation. When another cache is run over these ids and its
// likeliest token is the baseline's at the first n decisions, then its own greedy text would begin
// with the same n tokens.
struct GreedyProbe {
  std::vector<int32_t> ids;
  int64_t first_decision = 0;  // position whose logits choose the first new token
  int64_t decisions = 0;       // the choice to stop included
};

// Continues the beginnings of up to 8 of the windows by at most `new_tokens` tokens with a cache of
// `dtype`. Windows too short to begin anything with are passed over.
std::vector<GreedyProbe> make_greedy_probes(const Checkpoint& checkpoint, const ModelConfig& config,
                                            Backend& backend, DType dtype,
                                            const std::vector<std::vector<int32_t>>& windows,
                                            int64_t new_tokens);

}  // namespace fp8kv
