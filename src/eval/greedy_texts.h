// Greedy texts of two caches that part, to be read side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/windows/model_on_backend.h"
#include "eval/eval_report.h"
#include "eval/evaluate.h"

namespace fp8kv {

struct PartedIds {
  std::vector<int32_t> prompt;
  std::vector<int32_t> baseline, other;  // the continuations, which differ
};

// Returns the prompts on which a cache parted from the baseline, those that part first before
// others, at most `most`. `greedy`: its figures, made by evaluate for the same windows.
std::vector<std::vector<int32_t>> parted_prompts(const std::vector<std::vector<int32_t>>& windows,
                                                 const GreedyFigures& greedy, size_t most);

// Returns what the baseline and `cache` make of these prompts. Both models are loaded again.
// `options` as for evaluate.
std::vector<PartedIds> parted_greedy_texts(const ModelOnBackend& model,
                                           const std::vector<std::vector<int32_t>>& prompts,
                                           const EvalOptions& options, const CandidateReport& cache,
                                           Log& log);

}  // namespace fp8kv
