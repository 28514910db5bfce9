// Which of the evaluated caches is advised, and why that one. Differences within two standard
// errors decide nothing.
#pragma once

#include <vector>

#include "eval/eval_report.h"
#include "eval/standard_errors.h"

namespace fp8kv {

// The KL divergence of `a` less that of `b`, in nats a token, paired over the parts of the text.
// REQUIRES candidates of one report.
MeanAndError kld_difference(const CandidateReport& a, const CandidateReport& b);

// Scales of 1 in an E4M3 cache. They are measured to compare with, and never advised.
bool is_control(const CandidateReport& candidate);

struct CacheAdvice {
  // The advised cache: FP8 where any FP8 cache was measured, else another quantised one. nullptr if
  // there is none. A control only where nothing else was measured.
  const CandidateReport* cache = nullptr;
  // The candidate of least KL divergence among those that may be advised.
  const CandidateReport* nearest = nullptr;
  // Those that cannot be told from `nearest`, without `cache` itself.
  std::vector<const CandidateReport*> tied;
  size_t advisable = 0;  // caches among which the choice was made
};

// The least KL divergence decides. Among caches that cannot be told from it, fp8_e4m3 with policy
// amax is taken, the plainest; without that one, the least.
CacheAdvice advise(const EvalReport& report);

// The advised cache if it is FP8, whose limits charts show; else nullptr.
const CandidateReport* advised_fp8(const EvalReport& report);

}  // namespace fp8kv
