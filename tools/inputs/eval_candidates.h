// The caches that `eval` measures, and the source of their scales.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "eval/eval_report.h"
#include "options/options.h"
#include "policy/policies.h"

namespace fp8kv {

// Existing scales, or policies that will make some.
struct ScaleChoice {
  std::string label;               // names the scales: "kv_cache_scales.json", "checkpoint", "unit"
  std::optional<KvScales> scales;  // nullopt: 1 everywhere, unless there are policies
  std::vector<Policy> policies;
};

// Scales from --scales, --unit-scales or --policy, else those in the checkpoint, else policy amax,
// which is noted on `log`. Throws a usage Error for contradictory flags.
ScaleChoice choose_scales(const EvalCommandOptions& options, const Checkpoint& checkpoint,
                          const ModelConfig& config, Log& log);

// Makes one candidate for each dtype and policy. 16-bit and E5M2 caches take no scales and appear
// once. Candidates of policies get their scales later. Policies that make no scales for NVFP4 are
// left out there, with a note.
// Throws a usage Error for a dtype or policy named twice, in any spelling, and for scales that no
// candidate takes.
std::vector<CandidateReport> make_candidates(const EvalCommandOptions& options,
                                             const ScaleChoice& choice, const ModelConfig& config,
                                             Log& log);

// Candidates for --against. The first is the model's own cache, which the others are measured on.
// It stays the only one if no FP8 cache was asked for and the checkpoint has no scales.
std::vector<CandidateReport> candidates_against(const EvalCommandOptions& options,
                                                const Checkpoint& checkpoint,
                                                const ModelConfig& config, ScaleChoice& choice,
                                                Log& log);

// Whether a candidate has a policy that makes scales from magnitudes.
bool want_magnitudes(const ScaleChoice& choice, const std::vector<CandidateReport>& candidates);

// Whether a policy needs losses, which collect() measures if asked.
bool want_losses(const ScaleChoice& choice);

// Gives the candidates of policies their scales, made from these magnitudes. `latent`: see
// KvScales.
void add_policy_scales(const std::vector<LayerMagnitudes>& magnitudes, const ScaleChoice& choice,
                       bool latent, std::vector<CandidateReport>& candidates);

// The dtype of --baseline; "auto" is the model's. Throws a usage Error unless it is a float cache
// without scales.
DType baseline_dtype(const EvalCommandOptions& options, const ModelConfig& config);

}  // namespace fp8kv
