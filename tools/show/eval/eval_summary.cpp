#include "show/eval/eval_summary.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "core/numbers/dtype.h"
#include "report/advice.h"
#include "report/evidence.h"
#include "report/serving.h"
#include "report/verdict.h"
#include "show/eval/figure_text.h"
#include "show/output.h"
#include "show/scales/layer_bars.h"

namespace fp8kv {
namespace {

// A bar for each layer, and the three layers that lose most.
std::string layer_lines(const CandidateReport& of) {
  std::vector<size_t> layers;
  for (size_t i = 0; i < of.layers.size(); ++i) {
    if (of.layers[i].has_cache()) layers.push_back(i);
  }
  if (layers.empty()) return "";
  const auto error = [&](size_t layer) { return of.layers[layer].attention_error; };
  std::stable_sort(layers.begin(), layers.end(),
                   [&](size_t a, size_t b) { return error(a) > error(b); });
  const double most = error(layers[0]);
  std::vector<std::optional<double>> shares(of.layers.size());
  for (const size_t i : layers)
    shares[i] = most > 0 && std::isfinite(error(i)) ? error(i) / most : 0;
  std::vector<std::string> worst;
  for (size_t i = 0; i < std::min<size_t>(3, layers.size()); ++i) {
    worst.push_back(cat(share_text(error(layers[i])), " in layer ", layers[i]));
  }
  return layer_bars("layers", shares) +
         noted("", cat("error of the attention output, ", of.name, ": ", join(worst)));
}

}  // namespace

Table eval_table(const EvalReport& report) {
  Table table(
      {"cache", "perplexity", "delta", "KLD", "KLD 99.9%", "top-1", "greedy text", "B/token"});
  const auto add = [&](const std::string& name, const CandidateReport& of, bool baseline) {
    const TokenFigures& total = of.total;
    const std::string greedy = greedy_words(of.greedy);
    table.add({name,
               cat(significant(total.perplexity, 6), " ± ", significant(total.perplexity_error, 2)),
               baseline ? "-" : delta_text(total), baseline ? "-" : kld_text(total),
               baseline ? "-" : significant(total.kld_p999, 3),
               baseline ? "-" : fixed(total.top1 * 100, 2) + "%",
               baseline || greedy.empty() ? "-" : greedy, grouped(of.bytes_per_token)});
  };
  add(report.baseline.name + " (baseline)", report.baseline, true);
  for (const CandidateReport& each : report.candidates) add(each.name, each, false);
  return table;
}

std::string eval_summary(const EvalReport& report) {
  std::string text = eval_table(report).text() + "\n";
  if (const CandidateReport* chosen = advise(report).cache) text += layer_lines(*chosen);
  const std::vector<std::string> lines = verdict_text(report).lines;
  for (size_t i = 0; i < lines.size(); ++i) text += noted(i == 0 ? "verdict" : "", lines[i]);
  const std::string weights =
      decoded_words(report.config.stored_as, std::string(torch_name(report.config.dtype)));
  if (!weights.empty()) text += noted("weights", terminal_line(weights));
  const Serving serving = serving_of(report);
  if (!serving.words.empty()) text += noted("next", serving.words);
  for (const std::string& command : serving.commands) text += "  " + command + "\n";
  return text;
}

}  // namespace fp8kv
