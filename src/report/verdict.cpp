#include "report/verdict.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "draw/numbers.h"
#include "eval/gates.h"
#include "eval/with_evidence.h"
#include "report/certificate_words.h"

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

std::string headline(const EvalReport& report, const CandidateReport& best, Loss loss) {
  const std::string cost = cat(best.name, " changes perplexity by ",
                               signed_percent(best.total.ppl_delta, best.total.ppl_delta_error),
                               " against ", report.baseline.name);
  switch (loss) {
    case Loss::within:
      return cat("The FP8 cache holds: ", cost, ".");
    case Loss::unclear:
      return cat("The FP8 cache seems to hold: ", cost,
                 ", but more text is needed to be sure of 0.5 %.");
    case Loss::too_little:
      return cat("Too little text for a verdict: ", failures_of(best), ".");
    case Loss::broken:
      if (!std::isfinite(best.total.ppl_delta)) {
        return "No FP8 cache works: the logits are not finite.";
      }
      return cat("No FP8 cache measured here works: of the nearest, ", best.name, ", ",
                 failures_of(best), ".");
    case Loss::beyond:
      break;
  }
  return cat("No FP8 cache measured here stays within 0.5 %: the nearest, ", cost, ".");
}

// Why the headline and the certificate are about these candidates.
std::string choice_line(const EvalReport& report, const CandidateReport& best) {
  size_t measured = 0;
  const CandidateReport* next = nullptr;
  for (const CandidateReport& each : report.candidates) {
    if (!fp8_format(each.dtype) || each.is_variant()) continue;
    ++measured;
    const bool nearer = next == nullptr || each.total.kld < next->total.kld;
    if (&each != &best && !std::isnan(each.total.kld) && nearer) next = &each;
  }
  std::string line;
  if (measured == 1) {
    line = cat(best.name, " is the only FP8 cache measured.");
  } else if (std::isnan(best.total.kld)) {
    line = cat(best.name, " is the first of the ", measured,
               " FP8 caches measured: none has a KL divergence that is a number.");
  } else {
    line =
        cat(best.name, " was chosen of ", measured, " FP8 caches as the nearest to ",
            report.baseline.name, ": its KL divergence is ", short_number(best.total.kld), " nats");
    if (next != nullptr) {
      line += cat(", that of the next, ", next->name, ", is ", short_number(next->total.kld));
    }
    line += ".";
  }
  const CandidateReport* certified = certified_candidate(report);
  if (certified == nullptr || certified == &best) return line;
  return cat(line, " What is said of scales is about ", certified->name,
             ", the first E4M3 cache: E5M2 is used without scales.");
}

std::string capacity_line(const EvalReport& report, const CandidateReport& best) {
  if (best.bytes_per_token == 0 || report.baseline.bytes_per_token == 0) return "";
  const double ratio = static_cast<double>(report.baseline.bytes_per_token) /
                       static_cast<double>(best.bytes_per_token);
  return cat("The same memory holds ", short_number(ratio),
             " times the tokens: ", grouped(best.bytes_per_token), " bytes each in place of ",
             grouped(report.baseline.bytes_per_token), ".");
}

std::string scales_line(const EvalReport& report) {
  const std::optional<Certificate> certificate = certificate_of(report);
  return certificate ? verdict_line(*certificate) : "";
}

std::string weakest_layer_line(const CandidateReport& best) {
  std::optional<size_t> worst;
  const auto error = [&](size_t layer) { return best.layers[layer].attention_error; };
  for (size_t i = 0; i < best.layers.size(); ++i) {
    if (best.layers[i].has_cache() && (!worst || error(*worst) < error(i))) worst = i;
  }
  if (!worst) return "";
  return cat("Its attention output is farthest off in layer ", *worst, ": ",
             short_percent(error(*worst)), ".");
}

}  // namespace

Loss loss_of(const CandidateReport& candidate) {
  const std::vector<GateResult> failures = default_failures(candidate);
  const TokenFigures& total = candidate.total;
  for (const GateResult& each : failures) {
    if (each.metric == "tokens") return Loss::too_little;
  }
  if (!failures.empty()) return Loss::broken;
  if (!(total.ppl_delta <= kVisibleLoss)) return Loss::beyond;
  const bool sure = total.ppl_delta + 2 * total.ppl_delta_error <= kVisibleLoss;
  return sure ? Loss::within : Loss::unclear;
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

const CandidateReport* nearest_fp8(const EvalReport& report) {
  const CandidateReport* best = nullptr;
  for (const CandidateReport& each : report.candidates) {
    if (!fp8_format(each.dtype) || each.is_variant()) continue;
    const bool nearer = best == nullptr || each.total.kld < best->total.kld ||
                        (std::isnan(best->total.kld) && !std::isnan(each.total.kld));
    if (nearer) best = &each;
  }
  return best;
}

const CandidateReport* certified_candidate(const EvalReport& report) {
  const CandidateReport* best = nearest_fp8(report);
  if (best == nullptr || report.magnitudes.empty()) return nullptr;
  if (is_e4m3(best->dtype)) return best;
  const auto found = std::find_if(report.candidates.begin(), report.candidates.end(),
                                  [](const auto& each) { return is_e4m3(each.dtype); });
  return found == report.candidates.end() ? nullptr : &*found;
}

std::optional<Certificate> certificate_of(const EvalReport& report) {
  const CandidateReport* candidate = certified_candidate(report);
  if (candidate == nullptr) return std::nullopt;
  return certify(with_evidence(report, *candidate), candidate->dtype.k);
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
  const CandidateReport* best = nearest_fp8(report);
  if (best == nullptr) {
    const bool in_blocks =
        std::any_of(report.candidates.begin(), report.candidates.end(),
                    [](const auto& each) { return each.dtype.k == KvFormat::ds_mla; });
    return {Loss::unclear,
            {in_blocks ? "No FP8 cache was measured that is not in blocks with their own scales."
                       : "No FP8 cache was measured."}};
  }
  VerdictText verdict{loss_of(*best), {}};
  verdict.lines.push_back(headline(report, *best, verdict.loss));
  for (const std::string& line : {choice_line(report, *best), capacity_line(report, *best),
                                  scales_line(report), weakest_layer_line(*best)}) {
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
