// Greedy texts of two caches that part, to be read side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "eval/eval_report.h"
#include "eval/evaluate.h"

namespace fp8kv {

struct PartedIds {
  std::vector<int32_t> prompt;
  std::vector<int32_t> baseline, other;  // the continuations, which differ
};

// Returns the continuations of the prompts on which `cache` parted from the baseline, those that
// part first before others, at most `most`. The prompts are those of make_greedy_probes for the
// same windows, and cache.greedy has their figures. Both models are loaded again. `options` as for
// evaluate.
std::vector<PartedIds> parted_greedy_texts(const Checkpoint& checkpoint, const ModelConfig& config,
                                           Backend& backend,
                                           const std::vector<std::vector<int32_t>>& windows,
                                           const EvalOptions& options, const CandidateReport& cache,
                                           size_t most, Log& log);

}  // namespace fp8kv
