#include "report/advice.h"

#include <cmath>

#include "base/error.h"

namespace fp8kv {
namespace {

bool is_quantised(const CandidateReport& candidate) {
  return !is_compute_dtype(candidate.dtype);
}

// The plainest have the lowest rank: amax in E4M3, then one scale for a tensor, then scales per
// head, which few runtimes load.
int rank_of(const CandidateReport& candidate) {
  if (candidate.dtype.k == KvFormat::e4m3fn && candidate.policy == "amax") return 0;
  return candidate.scales && candidate.scales->per_head() ? 2 : 1;
}

bool is_nearer(const CandidateReport& a, const CandidateReport& b) {
  return a.total.kld < b.total.kld || (std::isnan(b.total.kld) && !std::isnan(a.total.kld));
}

// The caches that may be advised: the FP8 ones, or the other quantised ones if none is FP8.
std::vector<const CandidateReport*> of_interest(const EvalReport& report) {
  std::vector<const CandidateReport*> fp8, others;
  for (const CandidateReport& each : report.candidates) {
    if (each.is_variant() || !is_quantised(each)) continue;
    (fp8_format(each.dtype) ? fp8 : others).push_back(&each);
  }
  return fp8.empty() ? others : fp8;
}

}  // namespace

MeanAndError kld_difference(const CandidateReport& a, const CandidateReport& b) {
  FP8KV_ASSERT(a.parts.size() == b.parts.size());
  std::vector<double> sums, counts;
  for (size_t i = 0; i < a.parts.size(); ++i) {
    sums.push_back(a.parts[i].kld - b.parts[i].kld);
    counts.push_back(static_cast<double>(a.parts[i].tokens));
  }
  MeanAndError difference = mean_over_parts(sums, counts);
  if (a.parts.size() < 2) difference.error = INFINITY;  // a single prediction decides nothing
  return difference;
}

bool is_control(const CandidateReport& candidate) {
  return is_e4m3(candidate.dtype) && candidate.policy == "unit";
}

CacheAdvice advise(const EvalReport& report) {
  CacheAdvice advice;
  const std::vector<const CandidateReport*> all = of_interest(report);
  std::vector<const CandidateReport*> advisable;
  for (const CandidateReport* each : all) {
    if (!is_control(*each)) advisable.push_back(each);
  }
  if (advisable.empty()) advisable = all;
  advice.advisable = advisable.size();
  for (const CandidateReport* each : advisable) {
    if (advice.nearest == nullptr || is_nearer(*each, *advice.nearest)) advice.nearest = each;
  }
  advice.cache = advice.nearest;
  for (const CandidateReport* each : advisable) {
    if (each == advice.nearest || !std::isfinite(each->total.kld)) continue;
    if (kld_difference(*each, *advice.nearest).is_clear()) continue;
    advice.tied.push_back(each);
  }
  for (const CandidateReport*& each : advice.tied) {
    const int rank = rank_of(*each), best = rank_of(*advice.cache);
    if (rank > best || (rank == best && !is_nearer(*each, *advice.cache))) continue;
    std::swap(each, advice.cache);
  }
  return advice;
}

const CandidateReport* advised_fp8(const EvalReport& report) {
  const CandidateReport* cache = advise(report).cache;
  return cache != nullptr && fp8_format(cache->dtype) ? cache : nullptr;
}

}  // namespace fp8kv
