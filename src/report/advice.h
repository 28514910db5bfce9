// Advises one of the evaluated caches, with the reason. Differences within two standard errors
// decide nothing.
#pragma once

#include <vector>

#include "eval/eval_report.h"
#include "eval/standard_errors.h"

namespace fp8kv {

// KL divergence of `a` minus that of `b`, in nats per token, paired over the parts of the text.
// REQUIRES candidates of one report.
MeanAndError kld_difference(const CandidateReport& a, const CandidateReport& b);

// Whether the candidate is an E4M3 cache with scales of 1. Controls are measured for comparison,
// and never advised if there is another cache.
bool is_control(const CandidateReport& candidate);

struct CacheAdvice {
  // The advised cache: FP8 if any FP8 cache was measured, else another quantised one. nullptr if
  // there is none. A control only if nothing else was measured.
  const CandidateReport* cache = nullptr;
  // The candidate with the least KL divergence among those that may be advised.
  const CandidateReport* nearest = nullptr;
  // Candidates that cannot be told from `nearest`, without `cache` itself.
  std::vector<const CandidateReport*> tied;
  size_t advisable = 0;  // caches that the choice was made from
};

// Advises the least KL divergence. Among caches that cannot be told from it, takes the plainest:
// fp8_e4m3 with policy amax, else one with a scale per tensor rather than per head.
CacheAdvice advise(const EvalReport& report);

// The advised cache if it is FP8, for charts that show its limits; else nullptr.
const CandidateReport* advised_fp8(const EvalReport& report);

}  // namespace fp8kv
