#include "report/pages/report_tables.h"

#include <algorithm>

#include "base/text.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/numbers.h"
#include "report/advice.h"
#include "report/pages/page_parts.h"

namespace fp8kv {
namespace {

HtmlCell number_cell(double value, int digits = 3) {
  return {short_number(value, digits), cat(value)};
}

HtmlCell percent_cell(double share) {
  return {short_percent(share), cat(share)};
}

HtmlCell share_cell(uint64_t count, uint64_t all) {
  return percent_cell(all == 0 ? 0 : static_cast<double>(count) / static_cast<double>(all));
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "–" : text;
}

// The baseline has no chart colour and no verdict.
std::vector<HtmlCell> baseline_cells(const CandidateReport& of) {
  return {{of.name, "", "<span class=\"sign\"></span>"}, {"baseline", ""}};
}

std::vector<HtmlCell> candidate_cells(const CandidateReport& of, int style) {
  const Loss loss = loss_of(of);
  return {{of.name, "", cat("<span class=\"sign\">", series_sign(style), "</span>")},
          {loss_name(loss), "", "", cat("badge ", loss_class(loss))}};
}

// " ▲" or " ▼" if the difference is beyond chance, else "".
std::string clear_sign(const MeanAndError& difference) {
  if (!difference.is_clear()) return "";
  return difference.mean > 0 ? " ▲" : " ▼";
}

// `advised`: the cache whose KLD the row is compared with; nullptr for the baseline.
std::vector<HtmlCell> summary_row(const CandidateReport& of, std::vector<HtmlCell> row,
                                  const CandidateReport* advised) {
  const TokenFigures& total = of.total;
  row.push_back(
      {cat(short_number(total.perplexity, 6), " ± ", short_number(total.perplexity_error, 2)),
       cat(total.perplexity)});
  if (advised == nullptr) {
    row.resize(row.size() + 5, {"–", ""});
  } else {
    const MeanAndError change{total.ppl_delta, total.ppl_delta_error};
    const std::string against = &of == advised ? "" : clear_sign(kld_difference(of, *advised));
    row.push_back(
        {signed_percent(change.mean, change.error) + clear_sign(change), cat(change.mean)});
    row.push_back({cat(short_number(total.kld), " ± ", short_number(total.kld_error, 1), against),
                   cat(total.kld)});
    row.push_back(number_cell(total.kld_p999));
    row.push_back({fixed(total.top1 * 100, 2) + " %", cat(total.top1)});
    row.push_back({or_dash(greedy_words(of.greedy)), ""});
  }
  row.push_back({grouped(of.bytes_per_token), cat(of.bytes_per_token)});
  return row;
}

std::vector<HtmlCell> layer_row(const CandidateReport& of, size_t layer, bool key,
                                const std::vector<double>& amax,
                                const std::vector<double>& scales) {
  const LayerErrors& errors = of.layers[layer];
  const CacheErrors& cache = key ? errors.k : errors.v;
  const bool seen = layer < amax.size();
  return {{of.name, ""},
          {cat(layer), ""},
          {key ? "K" : "V", ""},
          seen ? number_cell(amax[layer], 4) : HtmlCell{"–", ""},
          fp8_format(of.dtype) ? number_cell(scales[layer], 4) : HtmlCell{"–", ""},
          percent_cell(errors.attention_error),
          percent_cell(cache.relative_error),
          share_cell(cache.saturated, cache.values),
          share_cell(cache.subnormal, cache.values),
          share_cell(cache.zero, cache.values),
          share_cell(cache.nonfinite_unclamped, cache.values)};
}

std::string shape_text(const ModelConfig& config) {
  if (config.n_layers() == 0) return "";
  return cat(config.architecture, ": ", config.n_layers(), " layers, ", config.n_kv_heads(),
             " KV heads of ", config.head_dim(), ", ", config.n_heads, " query heads; computed in ",
             torch_name(config.dtype));
}

std::string calibration_text(const EvalReport& report) {
  if (!report.calibration) return "none: the scales were given";
  const CalibrationReport& of = *report.calibration;
  const std::string amount = cat(grouped(of.tokens), " tokens in ", count_of(of.windows, "window"));
  if (of.same_data) return cat("on the very text that is evaluated: ", amount);
  return cat("on other text: ", amount, "; ", files_text(of.data));
}

}  // namespace

const char* loss_class(Loss loss) {
  switch (loss) {
    case Loss::within:
      return "good";
    case Loss::beyond:
    case Loss::broken:
      return "bad";
    case Loss::unclear:
    case Loss::too_little:
      break;
  }
  return "unsure";
}

std::string summary_table(const EvalReport& report) {
  const CandidateReport* advised = advise(report).cache;
  if (advised == nullptr && !report.candidates.empty()) advised = &report.candidates[0];
  HtmlTable table{
      .caption = cat(
          "KLD: mean KL divergence of the next token's distribution from the baseline's, in "
          "nats. Top-1: share of tokens whose likeliest successor is the baseline's. Greedy: "
          "texts that come out the same, and the token where the first of the others parts. ▲ or "
          "▼: above or below by more than two standard errors, where changes are compared with 0",
          report.candidates.size() < 2 ? "" : cat(", KLDs with that of ", advised->name), "."),
      .header = {"cache", "loss", "perplexity", "change", "KLD", "KLD 99.9 %", "top-1", "greedy",
                 "B/token"},
      .rows = {summary_row(report.baseline, baseline_cells(report.baseline), nullptr)},
      .names = 2};
  for (size_t i = 0; i < report.candidates.size(); ++i) {
    const CandidateReport& each = report.candidates[i];
    table.rows.push_back(summary_row(each, candidate_cells(each, static_cast<int>(i)), advised));
  }
  return html_table(table);
}

std::string layer_table(const EvalReport& report) {
  HtmlTable table{.caption = "Every layer of every candidate. Shares are of all values.",
                  .header = {"cache", "layer", "tensor", "largest", "scale", "attention error",
                             "error", "saturated", "subnormal", "zero", "NaN if unclamped"},
                  .rows = {},
                  .names = 1,
                  .sortable = true};
  const std::vector<double> k = layer_amax_of(report.magnitudes, &LayerMagnitudes::k);
  const std::vector<double> v = layer_amax_of(report.magnitudes, &LayerMagnitudes::v);
  for (const CandidateReport& each : report.candidates) {
    const size_t n = each.layers.size();
    const std::vector<double> k_scales = layer_scales_of(each, n, &LayerScales::k);
    const std::vector<double> v_scales = layer_scales_of(each, n, &LayerScales::v);
    for (size_t i = 0; i < n; ++i) {
      if (!each.layers[i].has_cache()) continue;
      table.rows.push_back(layer_row(each, i, true, k, k_scales));
      table.rows.push_back(layer_row(each, i, false, v, v_scales));
    }
  }
  return table.rows.empty() ? "" : html_table(table);
}

std::string provenance_list(const EvalReport& report) {
  std::string list;
  add_item(list, "Model", report.model);
  add_item(list, "Shape", shape_text(report.config));
  add_item(list, "Fingerprint", report.fingerprint);
  add_item(list, "Scales of another model", report.accepted_foreign);
  add_item(list, "Not known in config.json", join(report.config.unknown_keys));
  add_item(list, "Weights decoded from", report.config.stored_as);
  add_item(list, "Text", files_text(report.data));
  add_item(list, "Amount",
           cat(count_of(report.documents, "document"), ", ", count_of(report.windows, "window"),
               " of up to ", report.longest_window, " tokens, ", grouped(report.tokens),
               " tokens in all"));
  add_item(list, "Calibration", calibration_text(report));
  add_item(list, "Device", report.device);
  add_item(list, "Date", report.date);
  add_item(list, "Tool", report.tool_version.empty() ? "" : "fp8kv " + report.tool_version);
  return definition_list(list);
}

}  // namespace fp8kv
