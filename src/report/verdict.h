// The conclusion of an evaluation in plain words, and the cache that it is about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/eval_report.h"
#include "report/certificate.h"

namespace fp8kv {

// A higher rise of perplexity counts as a loss; published FP8 caches stay within this.
inline constexpr double kVisibleLoss = 0.005;

// A layer is named if the error of its attention output is above this. Layers of SmolLM2 135M and
// most of Qwen2.5-Coder 0.5B have errors of 2 to 13 %; five of the latter have 15 to 33 %:
// docs/accuracy.md.
inline constexpr double kLargeAttentionError = 0.15;

// The size of one cache's loss. The same rule holds for every cache: two standard errors.
enum class Loss {
  within,      // at most kVisibleLoss, by more than two standard errors
  unclear,     // kVisibleLoss lies within two standard errors of the measurement
  beyond,      // above kVisibleLoss, by more than two standard errors
  broken,      // fails one of default_gates (eval/gates.h), or is NaN
  too_little,  // fewer predicted tokens than default_gates ask for
};
Loss loss_of(const CandidateReport& candidate);
// "within 0.5 %", "unclear", "beyond 0.5 %", "broken", "too little text".
std::string loss_name(Loss loss);
// The default gates that the candidate fails: "kld is 0.53 (kld > 0.15) and top1 is 0.46 (top1 <
// 75%)". "" if it passes all.
std::string failures_of(const CandidateReport& candidate);

// The candidate whose scales are certified: the advised one (report/advice.h) if it is E4M3 or
// NVFP4, else the first E4M3 one. nullptr if there is none, or without magnitudes.
const CandidateReport* certified_candidate(const EvalReport& report);
// Certifies that candidate's scales for its own format, with the evaluated text as evidence.
std::optional<Certificate> certificate_of(const EvalReport& report);
// "Layers 0 and 1 need their scales; 1.0 is safe in the other 4."
std::string verdict_line(const Certificate& certificate);

// The largest magnitude over the heads of each layer.
std::vector<double> layer_amax_of(const std::vector<LayerMagnitudes>& magnitudes,
                                  std::vector<MagnitudeCounts> LayerMagnitudes::*tensor);

// The largest scale over the heads of each layer; 1 if the candidate has no scales.
std::vector<double> layer_scales_of(const CandidateReport& candidate, size_t n_layers,
                                    std::vector<float> LayerScales::*tensor);

struct VerdictText {
  Loss loss = Loss::unclear;       // of the advised cache, if any
  std::vector<std::string> lines;  // plain sentences; the first is the headline
};
VerdictText verdict_text(const EvalReport& report);

// "3 of 8, token 12": the number of prompts whose greedy text equals the baseline's, and the
// earliest token at which another one differs. "" if no greedy text was compared.
std::string greedy_words(const GreedyFigures& greedy);

}  // namespace fp8kv
