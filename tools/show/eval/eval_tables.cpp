#include "show/eval/eval_tables.h"

#include <cmath>

#include "base/text.h"
#include "eval/with_evidence.h"
#include "report/certificate_words.h"
#include "report/verdict.h"
#include "show/eval/figure_text.h"
#include "show/output.h"
#include "show/scales/certificate_text.h"

namespace fp8kv {
namespace {

std::string share(uint64_t count, uint64_t all) {
  return share_text(all == 0 ? 0 : static_cast<double>(count) / static_cast<double>(all));
}

std::string depth_table(const EvalReport& report) {
  if (report.baseline.depths.size() < 2) return "";
  Table table({"depth", "cache", "tokens", "perplexity", "delta", "KLD", "KLD 99.9%", "top-1"},
              {true, true}, 2);
  for (size_t i = 0; i < report.baseline.depths.size(); ++i) {
    for (const CandidateReport& each : report.candidates) {
      const TokenFigures& of = each.depths[i];
      table.add({cat(of.first_depth, "-", of.end_depth), each.name, grouped(of.tokens),
                 significant(of.perplexity, 6), delta_text(of), kld_text(of),
                 significant(of.kld_p999, 3), fixed(of.top1 * 100, 2) + "%"});
    }
  }
  return "\nBy depth: tokens in the cache\n" + table.text();
}

std::string attention_table(const EvalReport& report) {
  std::vector<std::string> header = {"layer"};
  for (const CandidateReport& each : report.candidates) header.push_back(each.name);
  Table table(std::move(header), {false});
  for (size_t i = 0; i < report.magnitudes.size(); ++i) {
    if (!report.magnitudes[i].has_cache()) continue;
    std::vector<std::string> row = {cat(i)};
    for (const CandidateReport& each : report.candidates) {
      row.push_back(share_text(each.layers[i].attention_error));
    }
    table.add(std::move(row));
  }
  const std::string part = report.attention_tokens == report.tokens
                               ? ""
                               : cat(" of ", count_of(report.attention_tokens, "token"));
  const std::string title =
      cat("Relative error of the attention output, on the ",
          report.against.empty() ? "baseline" : report.candidates.front().name,
          report.against.empty() ? "'s Q, K and V" : " cache's Q, K and V", part);
  return cat("\n", sentence(title), "\n", table.text());
}

std::string layer_table(const CandidateReport& of) {
  Table table({"layer", "", "error", "saturated", "subnormal", "zero", "NaN if unclamped"},
              {false, true}, 2);
  for (size_t i = 0; i < of.layers.size(); ++i) {
    if (!of.layers[i].has_cache()) continue;
    const auto add = [&](const char* tensor, const CacheErrors& errors) {
      table.add({cat(i), tensor, share_text(errors.relative_error),
                 share(errors.saturated, errors.values), share(errors.subnormal, errors.values),
                 share(errors.zero, errors.values),
                 share(errors.nonfinite_unclamped, errors.values)});
    };
    add("K", of.layers[i].k);
    add("V", of.layers[i].v);
  }
  const std::string title = of.name + ": what the cache does to K and V";
  return cat("\n", sentence(title), "\n", table.text());
}

std::string held_out_table(const EvalReport& report) {
  if (!report.calibration || report.calibration->same_data) return "";
  const std::vector<AmaxAfter>& parts = report.calibration->convergence;
  std::vector<std::string> header = {"layer", ""};
  for (const AmaxAfter& part : parts) header.push_back(grouped(part.tokens));
  header.insert(header.end(), {"evaluated", "ratio"});
  Table table(std::move(header), {false, true}, 2);
  for (size_t i = 0; i < report.magnitudes.size(); ++i) {
    if (!report.magnitudes[i].has_cache()) continue;
    const LayerAmax evaluated = layer_amax(report.magnitudes[i]);
    const auto add = [&](const char* tensor, std::vector<float> LayerAmax::*of) {
      std::vector<std::string> row = {cat(i), tensor};
      for (const AmaxAfter& part : parts) row.push_back(significant(largest(part.layers[i].*of)));
      const float reached = largest(evaluated.*of);
      const float known = largest(parts.back().layers[i].*of);
      row.push_back(significant(reached));
      row.push_back(known == 0 ? "-" : significant(double{reached} / double{known}, 3));
      table.add(std::move(row));
    };
    add("K", &LayerAmax::k);
    add("V", &LayerAmax::v);
  }
  const std::string title =
      "Largest magnitude after so many tokens of the calibration text, and in the evaluated";
  return cat("\n", sentence(title), "\n", table.text());
}

// Shows one certificate in full, because the verdicts on layers are the same for all scales. For
// other candidates shows only what their scales lose.
std::string certificate(const EvalReport& report) {
  const CandidateReport* const shown = certified_candidate(report);
  if (shown == nullptr) return "";
  std::string text =
      cat("\n", sentence(shown->name + ": are its scales safe for the evaluated text?"), "\n",
          certificate_text(with_evidence(report, *shown)));
  for (const CandidateReport& each : report.candidates) {
    if (&each == shown || !is_e4m3(each.dtype)) continue;
    const KvScales scales = with_evidence(report, each);
    const auto lost = certify(scales, scales.format).layers_that_do_not_hold();
    if (!lost.empty()) {
      text += sentence(
                  cat(each.name, ": its scales lose values that were seen in ", layer_list(lost))) +
              "\n";
    }
  }
  return text;
}

}  // namespace

std::string eval_tables(const EvalReport& report) {
  std::string text = depth_table(report) + attention_table(report);
  for (const CandidateReport& each : report.candidates) text += layer_table(each);
  return text + held_out_table(report) + certificate(report);
}

}  // namespace fp8kv
