#include "base/error.h"
#include "commands/commands.h"
#include "inputs/scale_source.h"
#include "json/json.h"
#include "options/kept_inputs.h"
#include "options/output_files.h"
#include "scales/scale_file.h"
#include "show/output.h"
#include "show/scales/extract_list.h"
#include "show/scales/scales_text.h"
#include "show/scales/summary_text.h"

namespace fp8kv {
namespace {

std::string summary_json(const ExtractOptions& options, const FoundScales& found) {
  const Provenance& from = found.scales.provenance;
  JsonWriter json;
  json.begin_object()
      .member("schema", "fp8kv.extract/1")
      .member("out", utf8_name(options.out.string()));
  json.member("form", found.dialect).member("format", format_name(found.scales.format));
  json.member("layers", uint64_t{found.scales.layers.size()});
  json.member("cache_layers", uint64_t{found.scales.cached_layers()});
  json.member("granularity", found.scales.per_head() ? "head" : "tensor");
  json.member("observation", observation_name(from.observation));
  json.member("producer", from.producer);
  json.member("producer_version", from.producer_version);
  json.member("stored_dtype", from.stored_dtype);
  diagnoses_json(json, found.diagnoses);
  return json.end_object().text();
}

// The text to write. Notes what the form cannot express.
std::string text_of(const ExtractOptions& options, const KvScales& scales, Log& log) {
  if (options.form == ExtractForm::fp8kv) return scale_file_text(scales);
  bool fused = !scales.per_head();
  for (const LayerScales& layer : scales.layers) fused = fused && layer.k == layer.v;
  if (!fused) {
    log.note("note: vllm-json has one scale per layer: the largest of K's and V's is taken");
  }
  if (!scales.drafts.empty()) {
    log.note(cat("note: vllm-json has no place for draft layers: the scales of ",
                 count_of(scales.drafts.size(), "draft layer"), " are left out"));
  }
  return vllm_json_text(scales, options.tp);
}

// Prints the list even if the scales cannot be used, and then throws.
void list_scales(const ExtractOptions& options) {
  Log log(options.verbosity);
  const FoundScales found = survey_scales(options.source);
  if (options.json) {
    print(list_json(options.source, found));
  } else {
    if (!found.absent) print_text(list_text(found));
    say_diagnoses(options.source, found.diagnoses, log);
  }
  if (found.refusal) throw *found.refusal;
}

}  // namespace

void run_command(const ExtractOptions& options) {
  if (options.tp > 1 && options.form != ExtractForm::vllm_json) {
    throw Error("--tp is for --to vllm-json alone: other forms have no ranks",
                "leave out --tp, or write --to vllm-json", ErrorKind::usage);
  }
  if (options.list) return list_scales(options);
  Log log(options.verbosity);
  const std::vector<OutputFile> outputs = {{"--out", options.out}};
  check_inputs_kept({{"CHECKPOINT", options.source}}, outputs);
  check_output_files(outputs, options.force);
  check_json_apart(options.json, options.out);
  report_leftovers(outputs, log);
  const FoundScales found = load_diagnosed(options.source, log);
  const size_t cached = found.scales.cached_layers(), all = found.scales.layers.size();
  log.note(cat("found scales of ", count_of(cached, "layer"), and_drafts(found.scales),
               cached < all ? cat(" (no KV cache in the other ", all - cached, ")") : "", " as ",
               quote(found.dialect), " for ", format_name(found.scales.format)));
  const KvScales portable = with_format(found.scales, stored_format(found.scales.format));
  write_output_file(options.out, text_of(options, portable, log), options.force);
  if (options.out == "-") return;
  log.note("wrote " + quote(options.out.string()));
  if (options.json) print(summary_json(options, found));
}

}  // namespace fp8kv
