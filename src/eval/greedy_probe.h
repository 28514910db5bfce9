// The baseline's greedy text, as windows that other caches are compared on.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"

namespace fp8kv {

// A prompt and the baseline's greedy continuation. Suppose another cache runs over these ids and
// chooses the baseline's token at the first n decisions. Then its own greedy text would begin with
// the same n tokens.
struct GreedyProbe {
  std::vector<int32_t> ids;
  int64_t first_decision = 0;  // position whose logits choose the first new token
  int64_t decisions = 0;       // includes the choice to stop
};

// The beginnings of up to 8 windows, spread evenly over the data: the prompts of greedy texts.
// Skips windows that are too short for a prompt.
std::vector<std::vector<int32_t>> greedy_prompts(const std::vector<std::vector<int32_t>>& windows);

// Continues greedy_prompts by at most `new_tokens` tokens, with a cache of `dtype`.
std::vector<GreedyProbe> make_greedy_probes(const ModelOnBackend& model, DType dtype,
                                            const std::vector<std::vector<int32_t>>& windows,
                                            int64_t new_tokens);

}  // namespace fp8kv
