// Runs a text through a model once, with a baseline cache and any number of others side by side,
// and measures what the others change.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "eval/eval_report.h"

namespace fp8kv {

// Another model that reads the same ids: figures are then against its predictions.
struct EvalReference {
  const Checkpoint& checkpoint;
  const ModelConfig& config;
};

struct EvalOptions {
  DType baseline = DType::f16;  // f32, f16 or bf16
  const EvalReference* against = nullptr;
  int64_t greedy_tokens = 64;  // of the greedy text that is compared; 0: none
  // Errors of layers, and magnitudes, are measured; else only what predictions lose.
  bool layer_errors = true;
  int64_t attention_rows = 16384;    // whose attention output is measured, or a batch more
  int threads = 0;                   // for what is measured on the host; 0: one per core
  std::string doing = "evaluating";  // for the progress
};

// The cache that a candidate stands for, layer by layer.
ModelCache cache_of(const CandidateReport& candidate, const ModelConfig& config);

// Fills in everything of `report` that takes running the model: magnitudes, the baseline, and the
// candidates, which come with name, dtype and scales. Its config says how the model is run.
//
// Measures all candidates while reading the weights once, one layer over all windows before the
// next. Greedy texts come before that: they load the whole model, and read it at each step.
// Candidates share a residual stream ([tokens, dim]) until their caches first give back different
// values. So a cache that loses nothing adds no work, and neither does FNUZ beside FN, where every
// scale is twice as large. Memory: the streams, one layer's weights and one batch's caches, and
// 256 MiB of logits (or one row of two streams) at a time. Results are the same for any number of
// threads.
//
// With `against` the baseline is that model with its baseline cache, in figures and greedy texts;
// errors of layers stay those against the first candidate's Q, K and V, which REQUIRES that one to
// be of f32, f16 or bf16. It takes another residual stream, and two heads at the end. Throws where
// the two have vocabularies of different sizes.
//
// REQUIRES a window of two tokens or more, and scales of FP8 candidates in their format.
void evaluate(const Checkpoint& checkpoint, Backend& backend,
              const std::vector<std::vector<int32_t>>& windows, const EvalOptions& options,
              EvalReport& report, Log& log);

}  // namespace fp8kv
