#include "report/pages/html_report.h"

#include "base/text.h"
#include "draw/html.h"
#include "report/pages/certificate_html.h"
#include "report/pages/figures.h"
#include "report/pages/greedy_html.h"
#include "report/pages/page_parts.h"
#include "report/pages/report_tables.h"
#include "report/pages/serving_html.h"

namespace fp8kv {
namespace {

std::string depth_part(const EvalReport& report) {
  if (report.baseline.depths.size() != 1) {
    return perplexity_figure(report) + divergence_figure(report);
  }
  return element("p", "",
                 cat("No prediction had more than ", report.longest_window - 1,
                     " tokens before it, which is all one depth. Losses grow with depth: windows "
                     "as long as the prompts to be served show them.")) +
         "\n";
}

}  // namespace

std::string html_report(const EvalReport& report) {
  const std::string name = last_part(report.model);
  const VerdictText verdict = verdict_text(report);
  std::string body = page_head({.kind = "What the FP8 KV cache costs",
                                .name = name,
                                .date = report.date,
                                .tool_version = report.tool_version}) +
                     verdict_box(loss_class(verdict.loss), verdict.lines);
  const bool few_layers = report.config.n_layers() <= kFewLayers;
  body += section("summary", "The caches compared", summary_table(report));
  body += section(
      "serving", "How to serve it",
      serve_words(report) + folded("Scales of each layer", scales_table(report), few_layers));
  body += section("ranges", "Do the values fit the format?", range_figures(report));
  body += section("certificate", "Are the scales safe?",
                  certificate_verdict(report) +
                      folded("Margins of each layer", certificate_table(report), few_layers));
  body += section("convergence", "Did the calibration see enough?",
                  convergence_figure(report) +
                      folded("Ranges of each layer", convergence_table(report), few_layers));
  body += section("errors", "What each layer loses",
                  attention_error_figure(report) + tensor_error_figures(report));
  body += section("depths", "What the text loses, by depth", depth_part(report));
  body += section("texts", "Where its texts part", greedy_texts_part(report));
  body += section("heads", "Which heads are large?",
                  head_figure(report, CacheTensor::k) + head_figure(report, CacheTensor::v));
  body += section("memory", "What the memory gains", capacity_figure(report));
  body += section("provenance", "Where these numbers come from", provenance_list(report));
  body += section("layers", "Every number",
                  folded("Errors of each layer and tensor", layer_table(report), false));
  return html_page(cat("FP8 KV cache: ", name), body);
}

}  // namespace fp8kv
