// Which caches `eval` measures, and where their scales come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "eval/eval_report.h"
#include "options/options.h"
#include "policy/policies.h"

namespace fp8kv {

// Scales that are there already, or policies that will make some.
struct ScaleChoice {
  std::string label;               // of the scales: "kv_cache_scales.json", "checkpoint", "unit"
  std::optional<KvScales> scales;  // absent: 1 everywhere, unless there are policies
  std::vector<Policy> policies;
};

// --scales, --unit-scales or --policy; else what the checkpoint carries; else the policy amax,
// which is said on `log`. Throws a usage Error where flags contradict.
ScaleChoice choose_scales(const EvalCommandOptions& options, const Checkpoint& checkpoint,
                          const ModelConfig& config, Log& log);

// One candidate for every dtype and policy; 16 bit and E5M2 run without scales and are there once.
// Those of policies have no scales yet. Throws a usage Error for a dtype or policy named twice, in
// whatever spelling, and for scales that no candidate has.
// Policies that make no scales for NVFP4 are left out there, which is said on `log`.
std::vector<CandidateReport> make_candidates(const EvalCommandOptions& options,
                                             const ScaleChoice& choice, const ModelConfig& config,
                                             Log& log);

// With --against: the model's own cache first, which others are measured on; and none but that
// where no FP8 cache was asked for and the checkpoint carries no scales.
std::vector<CandidateReport> candidates_against(const EvalCommandOptions& options,
                                                const Checkpoint& checkpoint,
                                                const ModelConfig& config, ScaleChoice& choice,
                                                Log& log);

// Some candidate has a policy that makes its scales from magnitudes.
bool want_magnitudes(const ScaleChoice& choice, const std::vector<CandidateReport>& candidates);

// Gives the candidates of policies the scales that these magnitudes make. `latent` as in KvScales.
void add_policy_scales(const std::vector<LayerMagnitudes>& magnitudes, const ScaleChoice& choice,
                       bool latent, std::vector<CandidateReport>& candidates);

// Throws a usage Error unless it is a float cache without scales; "auto" is the model's dtype.
DType baseline_dtype(const EvalCommandOptions& options, const ModelConfig& config);

}  // namespace fp8kv
