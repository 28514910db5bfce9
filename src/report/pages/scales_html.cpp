#include "report/pages/scales_html.h"

#include "base/text.h"
#include "draw/html.h"
#include "policy/make_scales.h"
#include "report/certificate_words.h"
#include "report/pages/certificate_html.h"
#include "report/pages/page_parts.h"
#include "report/pages/scales_figures.h"
#include "report/pages/serving_html.h"
#include "report/positions_words.h"
#include "report/verdict.h"

namespace fp8kv {
namespace {

constexpr const char* kWhose = "this file";

const char* css_class(ScalesSummary::Tone tone) {
  switch (tone) {
    case ScalesSummary::Tone::good:
      return "good";
    case ScalesSummary::Tone::bad:
      return "bad";
    case ScalesSummary::Tone::unsure:
      break;
  }
  return "unsure";
}

std::string summary_box(const ScalesSummary& summary) {
  std::string made = summary.made;
  made[0] = 'S';
  return verdict_box(css_class(summary.tone), {made + ".", cat("Scales of 1.0 ", summary.at_1, "."),
                                               "Next: " + summary.next});
}

std::string served_words(const CopyFate& vllm) {
  switch (vllm.use) {
    case CopyFate::Use::used:
      return "and vLLM serves the copy.";
    case CopyFate::Use::useless:
      return cat("for other runtimes than vLLM. vLLM serves the model itself: ", vllm.why, ".");
    case CopyFate::Use::unknown:
      return cat("and vLLM serves the copy. Whether it uses the scales is not known: ", vllm.why,
                 ".");
    case CopyFate::Use::no_model:
      return cat("for other runtimes than vLLM, which ", vllm.why, ".");
  }
  assertion_failed("a CopyFate", __FILE__, __LINE__);
}

std::string serving(const KvScales& scales, const Certificate& certificate,
                    const ScalesSummary& summary, const ScalesPage& about) {
  const CopyFate& vllm = about.names.vllm;
  std::vector<std::string> commands = {inject_command(scales, about.names)};
  if (vllm.use != CopyFate::Use::no_model) {
    commands.push_back(vllm_command(certificate, about.names));
  }
  return paragraph(cat(summary.ready ? "" : cat("Before that: ", summary.next, ". "),
                       "The scales go into a copy of the model, ", served_words(vllm),
                       " inject says what ", "other runtimes make of it, and their commands.")) +
         command_box(commands);
}

std::string verdicts(const KvScales& scales, const Certificate& certificate, bool few_layers) {
  std::string on_fnuz;
  if (formats_served(scales).size() > 1) {
    const std::string other = verdict_line(certify(scales, KvFormat::e4m3fnuz));
    on_fnuz = paragraph(cat("On GPUs with FNUZ formats, where scales are doubled: ",
                            other == verdict_line(certificate) ? "the same." : other));
  }
  return certificate_verdict(certificate, kWhose, "values that were seen") + on_fnuz +
         folded("Margins of each layer", certificate_table(certificate, kWhose), few_layers);
}

std::string positions(const PositionsNote& note) {
  std::string text;
  for (const std::string& line : positions_lines(note)) text += paragraph(line + ".");
  return text;
}

std::string shards_text(const ShardNote& shards) {
  return shards.of == 0 ? "" : cat(shards.taken.size(), " of ", count_of(shards.of, "shard"));
}

std::string provenance(const KvScales& scales, const ScalesPage& about) {
  const Provenance& from = scales.provenance;
  std::string list;
  add_item(list, "Made by",
           cat(from.source, from.tool_version.empty() ? "" : " ", from.tool_version));
  add_item(list, "Model type", scales.model_type);
  add_item(list, "Fingerprint", from.model_fingerprint);
  add_item(list, "Scales of another model", from.accepted_foreign);
  add_item(list, "Not known in config.json", join(from.unknown_keys));
  add_item(list, "Weights decoded from", from.weights_from);
  add_item(list, "Format",
           cat(format_name(scales.format), ", one scale per ",
               scales.per_head() ? "KV head" : "tensor"));
  add_item(list, "Policy", policy_name(scales));
  add_item(list, "Text", files_text(from.data));
  add_item(list, "Chat template", join(from.chat_templates));
  add_item(list, "Evidence", evidence_words(from));
  add_item(list, "Shards", shards_text(from.shards));
  add_item(list, "Date of this page", about.date);
  add_item(list, "Tool", about.tool_version.empty() ? "" : "fp8kv " + about.tool_version);
  return definition_list(list);
}

}  // namespace

std::string scales_html(const KvScales& scales, const ScalesPage& about) {
  const Certificate certificate = certify(scales);
  const ScalesSummary summary = summary_of(scales, certificate, about.names);
  const bool few_layers = static_cast<int64_t>(scales.layers.size()) <= kFewLayers;
  const std::string half = half_figure(scales);
  std::string body = page_head({.kind = "Scales for an FP8 KV cache",
                                .name = about.name,
                                .date = about.date,
                                .tool_version = about.tool_version}) +
                     summary_box(summary);
  body += section("serving", "How to serve it",
                  serving(scales, certificate, summary, about) +
                      folded("Scales of each layer", scales_table(scales, kWhose), few_layers));
  body += section("certificate", "Are the scales safe?", verdicts(scales, certificate, few_layers));
  body += section("ranges", "Do the values fit the format?",
                  range_figures(scales) + octave_figure(scales, CacheTensor::k) +
                      octave_figure(scales, CacheTensor::v));
  body += section("evidence", "Did the calibration see enough?",
                  paragraph(evidence_words(scales.provenance) + ".") + half +
                      folded("Ranges of each layer", half_table(scales), few_layers));
  body += section("positions", "Which positions were measured?",
                  positions(scales.provenance.positions));
  body += section("provenance", "Where these numbers come from", provenance(scales, about));
  return html_page(cat("FP8 KV scales: ", about.name), body);
}

}  // namespace fp8kv
