#include "report/html_report.h"

#include <filesystem>

#include "base/text.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/report_tables.h"
#include "report/verdict.h"

namespace fp8kv {
namespace {

// The last part of the model's path: "models/Llama-3/" is Llama-3.
std::string model_name(const EvalReport& report) {
  const std::filesystem::path path(report.model);
  const std::string name =
      path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  return name.empty() || name == "." || name == ".." ? report.model : name;
}

std::string verdict_box(const EvalReport& report) {
  const VerdictText verdict = verdict_text(report);
  std::string lines;
  for (size_t i = 0; i < verdict.lines.size(); ++i) {
    lines += element("p", i == 0 ? "class=\"first\"" : "", escape_html(verdict.lines[i])) + "\n";
  }
  const char* css_class = verdict.outcome == Outcome::within   ? "class=\"verdict good\""
                          : verdict.outcome == Outcome::beyond ? "class=\"verdict bad\""
                                                               : "class=\"verdict\"";
  return element("section", css_class, lines) + "\n";
}

std::string section(const char* id, const char* heading, const std::string& content) {
  if (content.empty()) return "";
  return element("section", cat("aria-labelledby=\"", id, "\""),
                 cat("\n", element("h2", cat("id=\"", id, "\""), heading), "\n", content)) +
         "\n";
}

std::string folded(const char* summary, const std::string& content) {
  if (content.empty()) return "";
  return element("details", "", element("summary", "", summary) + "\n" + content) + "\n";
}

}  // namespace

std::string html_report(const EvalReport& report) {
  const std::string name = model_name(report);
  std::string body = element("p", "class=\"kind\"", "What the FP8 KV cache costs") + "\n" +
                     element("h1", "", escape_html(name)) + "\n" + verdict_box(report);
  body += section("summary", "The caches compared", summary_table(report));
  body += section("ranges", "Do the values fit the format?",
                  range_figure(report, CacheTensor::k) + range_figure(report, CacheTensor::v));
  body += section("errors", "What each layer loses",
                  attention_error_figure(report) + tensor_error_figure(report, CacheTensor::k) +
                      tensor_error_figure(report, CacheTensor::v));
  body += section("depths", "What the text loses, by depth",
                  perplexity_figure(report) + divergence_figure(report));
  body += section("heads", "Which heads are large?",
                  head_figure(report, CacheTensor::k) + head_figure(report, CacheTensor::v));
  body += section("memory", "What the memory gains", capacity_figure(report));
  body += section("provenance", "Where these numbers come from", provenance_list(report));
  body += section("layers", "Every number",
                  folded("Errors of each layer and tensor", layer_table(report)));
  return html_page(cat("FP8 KV cache: ", name), body);
}

}  // namespace fp8kv
