#include "report/html_report.h"

#include <filesystem>

#include "base/text.h"
#include "draw/html.h"
#include "report/certificate_html.h"
#include "report/figures.h"
#include "report/report_tables.h"
#include "report/serving_html.h"

namespace fp8kv {
namespace {

// Tables with a row for every layer are unfolded up to here.
constexpr int64_t kFewLayers = 8;

// The last part of the model's path: "models/Llama-3/" is Llama-3.
std::string model_name(const EvalReport& report) {
  const std::filesystem::path path(report.model);
  const std::string name =
      path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  return name.empty() || name == "." || name == ".." ? report.model : name;
}

// Keeps percent signs on the line of their number.
std::string unbroken(std::string text) {
  for (size_t at = text.find(" %"); at != text.npos; at = text.find(" %", at)) {
    text.replace(at, 1, "&nbsp;");
  }
  return text;
}

// "2026-11-22, fp8kv 1.2.3".
std::string made_line(const EvalReport& report) {
  std::vector<std::string> parts;
  if (!report.date.empty()) parts.push_back(report.date);
  if (!report.tool_version.empty()) parts.push_back("fp8kv " + report.tool_version);
  if (parts.empty()) return "";
  std::string line = parts[0];
  if (parts.size() > 1) line += ", " + parts[1];
  return element("p", "class=\"note\"", escape_html(line)) + "\n";
}

std::string verdict_box(const EvalReport& report) {
  const VerdictText verdict = verdict_text(report);
  std::string lines;
  for (size_t i = 0; i < verdict.lines.size(); ++i) {
    lines +=
        element("p", i == 0 ? "class=\"first\"" : "", unbroken(escape_html(verdict.lines[i]))) +
        "\n";
  }
  return element("section", cat("class=\"verdict ", loss_class(verdict.loss), "\""), lines) + "\n";
}

std::string section(const char* id, const char* heading, const std::string& content) {
  if (content.empty()) return "";
  return element("section", cat("aria-labelledby=\"", id, "\""),
                 cat("\n", element("h2", cat("id=\"", id, "\""), heading), "\n", content)) +
         "\n";
}

std::string folded(const char* summary, const std::string& content, bool open) {
  if (content.empty()) return "";
  return element("details", open ? "open" : "", element("summary", "", summary) + "\n" + content) +
         "\n";
}

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
  const std::string name = model_name(report);
  std::string body = element("p", "class=\"kind\"", "What the FP8 KV cache costs") + "\n" +
                     element("h1", "", escape_html(name)) + "\n" + made_line(report) +
                     verdict_box(report);
  const bool few = report.config.n_layers() <= kFewLayers;
  body += section("summary", "The caches compared", summary_table(report));
  body += section("serving", "How to serve it",
                  serve_words(report) + folded("Scales of each layer", scales_table(report), few));
  body += section("ranges", "Do the values fit the format?",
                  range_figure(report, CacheTensor::k) + range_figure(report, CacheTensor::v));
  body += section("certificate", "Are the scales safe?",
                  certificate_verdict(report) +
                      folded("Margins of each layer", certificate_table(report), few));
  body += section(
      "convergence", "Did the calibration see enough?",
      convergence_figure(report) + folded("Ranges of each layer", convergence_table(report), few));
  body += section("errors", "What each layer loses",
                  attention_error_figure(report) + tensor_error_figure(report, CacheTensor::k) +
                      tensor_error_figure(report, CacheTensor::v));
  body += section("depths", "What the text loses, by depth", depth_part(report));
  body += section("heads", "Which heads are large?",
                  head_figure(report, CacheTensor::k) + head_figure(report, CacheTensor::v));
  body += section("memory", "What the memory gains", capacity_figure(report));
  body += section("provenance", "Where these numbers come from", provenance_list(report));
  body += section("layers", "Every number",
                  folded("Errors of each layer and tensor", layer_table(report), false));
  return html_page(cat("FP8 KV cache: ", name), body);
}

}  // namespace fp8kv
