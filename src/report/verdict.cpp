#include "report/verdict.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "draw/numbers.h"
#include "eval/gates.h"
#include "eval/with_evidence.h"
#include "report/advice.h"
#include "report/certificate_words.h"
#include "report/loss_places.h"

namespace fp8kv {
namespace {

std::vector<GateResult> default_failures(const CandidateReport& candidate) {
  std::vector<GateResult> failures;
  for (const Gate& gate : parse_gates(kDefaultGates)) {
    GateResult result = check_gate(candidate, gate);
    if (result.failed) failures.push_back(std::move(result));
  }
  return failures;
}

// "FP8 cache", or "cache" for other formats.
std::string cache_noun(const CandidateReport& cache) {
  return fp8_format(cache.dtype) ? "FP8 cache" : "cache";
}

std::string headline(const EvalReport& report, const CacheAdvice& advice, Loss loss) {
  const CandidateReport& best = *advice.cache;
  const std::string noun = cache_noun(best);
  const std::string cost = cat(best.name, " changes perplexity by ",
                               signed_percent(best.total.ppl_delta, best.total.ppl_delta_error),
                               " against ", report.baseline.name);
  switch (loss) {
    case Loss::within:
      return cat("The ", noun, " holds: ", cost, ".");
    case Loss::unclear:
      return cat("Not decided yet: ", cost,
                 ", and 0.5 % lies within two standard errors. More text decides.");
    case Loss::too_little:
      return cat("Too little text for a verdict: ", failures_of(best), ".");
    case Loss::broken:
      if (!std::isfinite(best.total.ppl_delta)) {
        return cat("No ", noun, " works: the logits are not finite.");
      }
      return cat("No ", noun, " measured here works: of the nearest, ", best.name, ", ",
                 failures_of(best), ".");
    case Loss::beyond:
      break;
  }
  if (is_control(best)) return cat("Scales of 1 do not stay within 0.5 %: ", cost, ".");
  return cat("No ", noun, " measured here stays within 0.5 %: the nearest, ", cost, ".");
}

std::string kld_text(const CandidateReport& candidate) {
  return cat(short_number(candidate.total.kld), " ± ", short_number(candidate.total.kld_error, 2));
}

std::string names_of(const std::vector<const CandidateReport*>& candidates) {
  std::vector<std::string> names;
  for (const CandidateReport* each : candidates) names.push_back(each->name);
  return join(names);
}

// The reason to advise this cache and no other of its kind. "" if there is no other.
std::string choice_line(const CacheAdvice& advice) {
  const CandidateReport& best = *advice.cache;
  const std::string kind = cache_noun(best);
  if (is_control(best)) {
    return cat(best.name, " is a control: no other ", kind,
               " was measured. Calibrated scales cost no memory: measure --policy amax too.");
  }
  if (advice.advisable == 1) return "";
  if (std::isnan(best.total.kld)) {
    return cat(best.name, " is the first of ", advice.advisable, " ", kind,
               "s: none has a KL divergence that is a number.");
  }
  const std::string of = cat(" of ", advice.advisable, " ", kind, "s");
  if (advice.tied.empty()) {
    return cat(best.name, " has the least KL divergence", of,
               ", beyond two standard errors: ", kld_text(best), " nats.");
  }
  if (advice.nearest != advice.cache) {
    return cat(best.name, " was chosen", of, " because it is the plainest: its KL divergence, ",
               kld_text(best), " nats, differs from that of ", names_of(advice.tied),
               " by less than two standard errors.");
  }
  return cat(best.name, " was chosen", of, ": its KL divergence is ", kld_text(best),
             " nats. This text cannot tell it from ", names_of(advice.tied), ".");
}

// Compares the control with the advised cache.
std::string control_line(const EvalReport& report, const CacheAdvice& advice) {
  for (const CandidateReport& each : report.candidates) {
    if (!is_control(each) || each.is_variant() || &each == advice.cache) continue;
    if (each.dtype.k != advice.cache->dtype.k || std::isnan(each.total.kld)) continue;
    const MeanAndError difference = kld_difference(each, *advice.cache);
    if (!difference.is_clear()) {
      return "Scales of 1 are a control. This text cannot tell them from it.";
    }
    const char* which = difference.mean > 0 ? " more" : " less";
    return cat("Scales of 1, a control, lose ", short_number(std::abs(difference.mean)), which,
               " nats a token.");
  }
  return "";
}

// Describes the measured formats besides FP8, so that none is left out.
std::string others_line(const EvalReport& report, const CacheAdvice& advice) {
  std::vector<std::string> parts;
  for (const CandidateReport& each : report.candidates) {
    const bool other = !fp8_format(each.dtype) && !is_compute_dtype(each.dtype);
    if (!other || !fp8_format(advice.cache->dtype) || each.is_variant()) continue;
    if (std::isnan(each.total.kld)) {
      parts.push_back(cat(each.name, " gives no numbers"));
      continue;
    }
    const MeanAndError difference = kld_difference(each, *advice.cache);
    const char* loses = !difference.is_clear() ? " loses as much"
                        : difference.mean > 0  ? " loses more"
                                               : " loses less";
    parts.push_back(cat(each.name, loses, " (", kld_text(each), " nats, ",
                        grouped(each.bytes_per_token), " bytes a token)"));
  }
  return parts.empty() ? "" : cat("Other formats: ", join(parts), ".");
}

std::string certified_line(const EvalReport& report, const CacheAdvice& advice) {
  const CandidateReport* certified = certified_candidate(report);
  if (certified == nullptr || certified == advice.cache) return "";
  return cat("What is said of scales is about ", certified->name,
             ", the first E4M3 cache: E5M2 is used without scales.");
}

std::string capacity_line(const EvalReport& report, const CandidateReport& best) {
  if (best.bytes_per_token == 0 || report.baseline.bytes_per_token == 0) return "";
  const double ratio = static_cast<double>(report.baseline.bytes_per_token) /
                       static_cast<double>(best.bytes_per_token);
  return cat("The same memory holds ", short_number(ratio), " times the tokens.");
}

std::string scales_line(const EvalReport& report) {
  const std::optional<Certificate> certificate = certificate_of(report);
  if (!certificate) return "";
  return certificate->text.enough ? cat("By range alone, ", verdict_sentence(*certificate), ".")
                                  : verdict_line(*certificate);
}

// The smallest error of a layer's attention output over all measured FP8 caches.
double least_error(const EvalReport& report, size_t layer) {
  double least = INFINITY;
  for (const CandidateReport& each : report.candidates) {
    if (each.is_variant() || !fp8_format(each.dtype)) continue;
    least = std::min(least, each.layers[layer].attention_error);
  }
  return least;
}

// Names layers that every FP8 cache harms. Layers already in 16 bit have no error, so they do not
// count.
std::string lossy_layers_line(const EvalReport& report, const CandidateReport& best) {
  std::vector<size_t> lossy;
  double most = 0;
  for (size_t i = 0; i < best.layers.size(); ++i) {
    if (!best.layers[i].has_cache()) continue;
    const double least = least_error(report, i);
    if (!(least > kLargeAttentionError) || std::isinf(least)) continue;
    lossy.push_back(i);
    most = std::max(most, least);
  }
  if (lossy.empty()) return "";
  std::string flag;
  std::set<int64_t> left(best.skipped.begin(), best.skipped.end());
  left.insert(lossy.begin(), lossy.end());
  for (const int64_t layer : left) flag += cat(flag.empty() ? "" : ",", layer);
  const bool one = lossy.size() == 1;
  return cat("But ", layer_list(lossy), one ? " loses " : " lose ", short_percent(most),
             one ? "" : " at most",
             " of the attention output in every FP8 cache measured. Measure ", one ? "it" : "them",
             " in 16 bit: eval --kv-cache-dtype-skip-layers ", flag, ".");
}

}  // namespace

Loss loss_of(const CandidateReport& candidate) {
  const std::vector<GateResult> failures = default_failures(candidate);
  const TokenFigures& total = candidate.total;
  for (const GateResult& each : failures) {
    if (each.metric == "tokens") return Loss::too_little;
  }
  if (!failures.empty()) return Loss::broken;
  if (total.ppl_delta + 2 * total.ppl_delta_error <= kVisibleLoss) return Loss::within;
  const bool beyond = total.ppl_delta - 2 * total.ppl_delta_error > kVisibleLoss;
  return beyond || std::isnan(total.ppl_delta) ? Loss::beyond : Loss::unclear;
}

std::string loss_name(Loss loss) {
  switch (loss) {
    case Loss::within:
      return "within 0.5 %";
    case Loss::unclear:
      return "unclear";
    case Loss::beyond:
      return "beyond 0.5 %";
    case Loss::broken:
      return "broken";
    case Loss::too_little:
      break;
  }
  return "too little text";
}

std::string failures_of(const CandidateReport& candidate) {
  std::vector<std::string> found;
  for (const GateResult& each : default_failures(candidate)) {
    found.push_back(cat(each.finding, " (", each.gate, ")"));
  }
  return join(found);
}

const CandidateReport* certified_candidate(const EvalReport& report) {
  const CandidateReport* best = advise(report).cache;
  if (best == nullptr || report.magnitudes.empty()) return nullptr;
  if (is_e4m3(best->dtype) || is_nvfp4(best->dtype.k)) return best;
  const auto found = std::find_if(report.candidates.begin(), report.candidates.end(),
                                  [](const auto& each) { return is_e4m3(each.dtype); });
  return found == report.candidates.end() ? nullptr : &*found;
}

std::optional<Certificate> certificate_of(const EvalReport& report) {
  const CandidateReport* candidate = certified_candidate(report);
  if (candidate == nullptr) return std::nullopt;
  const KvScales scales = with_evidence(report, *candidate);
  return certify(scales, scales.format);
}

std::string verdict_line(const Certificate& certificate) {
  std::string sentence = verdict_sentence(certificate) + ".";
  if (sentence[0] >= 'a' && sentence[0] <= 'z') sentence[0] = static_cast<char>(sentence[0] - 32);
  return sentence;
}

std::vector<double> layer_amax_of(const std::vector<LayerMagnitudes>& magnitudes,
                                  std::vector<MagnitudeCounts> LayerMagnitudes::*tensor) {
  std::vector<double> amax;
  for (const LayerMagnitudes& layer : magnitudes) {
    double most = 0;
    for (const MagnitudeCounts& head : layer.*tensor) most = std::max(most, double{head.amax});
    amax.push_back(most);
  }
  return amax;
}

std::vector<double> layer_scales_of(const CandidateReport& candidate, size_t n_layers,
                                    std::vector<float> LayerScales::*tensor) {
  std::vector<double> scales(n_layers, 1);
  if (!candidate.scales) return scales;
  for (size_t i = 0; i < n_layers && i < candidate.scales->layers.size(); ++i) {
    const std::vector<float>& heads = candidate.scales->layers[i].*tensor;
    if (!heads.empty()) scales[i] = double{largest(heads)};
  }
  return scales;
}

VerdictText verdict_text(const EvalReport& report) {
  const CacheAdvice advice = advise(report);
  if (advice.cache == nullptr) return {Loss::unclear, {"No quantised cache was measured."}};
  VerdictText verdict{loss_of(*advice.cache), {}};
  verdict.lines.push_back(headline(report, advice, verdict.loss));
  for (const std::string& line :
       {choice_line(advice), control_line(report, advice), others_line(report, advice),
        certified_line(report, advice), capacity_line(report, *advice.cache), scales_line(report),
        lossy_layers_line(report, *advice.cache), loss_places_words(advice.cache->total),
        first_tokens_words(report.first_tokens)}) {
    if (!line.empty()) verdict.lines.push_back(line);
  }
  verdict.lines.push_back(cat("Measured on ", grouped(report.tokens), " tokens in ",
                              count_of(report.windows, "window"), "."));
  return verdict;
}

std::string greedy_words(const GreedyFigures& greedy) {
  if (greedy.agreed.empty()) return "";
  size_t same = 0;
  int64_t first = -1;
  for (size_t i = 0; i < greedy.agreed.size(); ++i) {
    if (greedy.agreed[i] == greedy.length[i]) {
      ++same;
    } else if (first < 0 || greedy.agreed[i] < first) {
      first = greedy.agreed[i];
    }
  }
  const std::string parts = first < 0 ? "" : cat(", token ", first + 1);
  return cat(same, " of ", greedy.agreed.size(), parts);
}

}  // namespace fp8kv
