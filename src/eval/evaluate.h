// Runs a text through a model once, with a baseline cache and any number of others side by side.
// Measures what the others change.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "eval/eval_report.h"

namespace fp8kv {

// Another model that reads the same token ids. Figures are then against its predictions.
struct EvalReference {
  const Checkpoint& checkpoint;
  const ModelConfig& config;
};

struct EvalOptions {
  DType baseline = DType::f16;  // f32, f16 or bf16
  const EvalReference* against = nullptr;
  int64_t greedy_tokens = 64;  // length of the compared greedy text; 0: none
  // Measure the errors of layers and the magnitudes too, not only the loss of predictions.
  bool layer_errors = true;
  int64_t attention_rows = 16384;  // rows whose attention output is measured; may exceed by a batch
  int threads = 0;                 // for measurements on the host; 0: one per core
  std::string doing = "evaluating";  // for the progress
};

// The cache of a candidate: its type, and the layers that it leaves in the model's dtype.
ModelCache cache_of(const CandidateReport& candidate, const ModelConfig& config);

// Runs the model and fills in the rest of `report`: config, magnitudes, the baseline, and the
// candidates, which already have name, dtype and scales. `model.config` may be report.config.
//
// Measures all candidates while it reads the weights once: each layer runs over all windows before
// the next one. Greedy texts come first: they load the whole model and read it at each step.
//
// Candidates share a residual stream ([tokens, dim]) until their caches first give back different
// values. So a lossless cache adds no work, and FNUZ beside FN adds none if every scale is twice as
// large. Memory: the streams, one layer's weights, one batch's caches, and 256 MiB of logits (or
// one row of two streams) at a time. Results are the same for any number of threads.
//
// With `against`, figures and greedy texts compare with that model and its baseline cache. Layer
// errors still compare with the first candidate's Q, K and V, which REQUIRES that candidate to be
// f32, f16 or bf16. `against` takes one more residual stream, and a second head. Throws if the
// vocabularies differ in size.
//
// REQUIRES a window of two tokens or more, and FP8 candidates with scales in their own format.
void evaluate(const ModelOnBackend& model, const std::vector<std::vector<int32_t>>& windows,
              const EvalOptions& options, EvalReport& report, Log& log);

}  // namespace fp8kv
