// What an evaluation says in plain words, and which of its caches that is about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/eval_report.h"
#include "report/certificate.h"

namespace fp8kv {

// More perplexity than this is called a loss: what published FP8 caches stay within.
inline constexpr double kVisibleLoss = 0.005;

// A layer whose attention output is off by more is named. Layers of SmolLM2 135M and most of
// Qwen2.5-Coder 0.5B are off by 2 to 13 %; five of the latter by 15 to 33 %: docs/accuracy.md.
inline constexpr double kLargeAttentionError = 0.15;

// How large the loss of one cache is. One rule for all of them: two standard errors.
enum class Loss {
  within,      // at most kVisibleLoss, with two standard errors to spare
  unclear,     // kVisibleLoss lies within two standard errors of what was measured
  beyond,      // more, by more than two standard errors
  broken,      // fails one of default_gates (eval/gates.h), or is no number at all
  too_little,  // fewer tokens were predicted than default_gates ask for
};
Loss loss_of(const CandidateReport& candidate);
// "within 0.5 %", "unclear", "beyond 0.5 %", "broken", "too little text".
std::string loss_name(Loss loss);
// "kld is 0.53 (kld > 0.15) and top1 is 0.46 (top1 < 75%)": the default gates that it fails; "" for
// none.
std::string failures_of(const CandidateReport& candidate);

// The candidate whose scales are certified: the advised one (report/advice.h) if it is E4M3 or
// NVFP4, else the first E4M3 one; nullptr without any, or without magnitudes.
const CandidateReport* certified_candidate(const EvalReport& report);
// Of its scales, by what was seen in the evaluated text; for the candidate's own format.
std::optional<Certificate> certificate_of(const EvalReport& report);
// "Layers 0 and 1 need their scales; 1.0 is safe in the other 4."
std::string verdict_line(const Certificate& certificate);

// Largest magnitude over the heads of each layer.
std::vector<double> layer_amax_of(const std::vector<LayerMagnitudes>& magnitudes,
                                  std::vector<MagnitudeCounts> LayerMagnitudes::*tensor);

// The largest scale over the heads of each layer; 1 where the candidate has none.
std::vector<double> layer_scales_of(const CandidateReport& candidate, size_t n_layers,
                                    std::vector<float> LayerScales::*tensor);

struct VerdictText {
  Loss loss = Loss::unclear;       // of the advised cache, if any
  std::vector<std::string> lines;  // plain sentences; the first is the headline
};
VerdictText verdict_text(const EvalReport& report);

// "3 of 8, token 12": prompts whose greedy text is the baseline's, and the earliest token at which
// one of the others differs. "" where no greedy text was compared.
std::string greedy_words(const GreedyFigures& greedy);

}  // namespace fp8kv
