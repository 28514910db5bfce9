#include "show/verify/verify_json.h"

#include "base/text.h"
#include "json/json.h"
#include "show/scales/scales_text.h"
#include "show/verify/runtime_report.h"

namespace fp8kv {
namespace {

// Writes the text, or null for "".
void text_or_null(JsonWriter& json, const char* key, const std::string& text) {
  json.key(key);
  if (text.empty()) {
    json.null();
  } else {
    json.value(utf8_name(text));
  }
}

void texts(JsonWriter& json, const char* key, const std::vector<std::string>& list) {
  json.key(key).begin_array();
  for (const std::string& text : list) json.value(utf8_name(text));
  json.end_array();
}

void layer_json(JsonWriter& json, const LayerFate& fate, const LayerOnDisk& layer) {
  json.begin_object().member("layer", fate.layer).member("fate", fate_name(fate.fate));
  json.member("doubled", fate.doubled).key("rounding_error");
  if (fate.error) {
    json.value(*fate.error);
  } else {
    json.null();
  }
  json.member("why", utf8_name(fate.why));
  std::vector<std::string> names;
  for (const NamedScale& scale : layer.scales) {
    if (!scale.name.empty()) names.push_back(scale.name);
  }
  texts(json, "tensors", names);
  json.end_object();
}

// Writes nothing for a folder without draft layers.
void drafts_json(JsonWriter& json, const VerifiedRuntime& runtime, const ScalesOnDisk& scales) {
  if (scales.drafts.empty()) return;
  json.key("draft_layers").begin_array();
  for (size_t i = 0; i < scales.drafts.size(); ++i) {
    const DraftVerdict& verdict = runtime.drafts[i];
    json.begin_object().member("layer", utf8_name(scales.drafts[i].facts.layer.name));
    json.member("result", runtime_outcome_name(verdict.outcome));
    json.member("sentence", utf8_name(verdict.sentence));
    text_or_null(json, "source", verdict.source);
    std::vector<std::string> names;
    for (const NamedScale& scale : scales.drafts[i].scales) names.push_back(scale.name);
    texts(json, "tensors", names);
    json.end_object();
  }
  json.end_array();
}

void runtime_json(JsonWriter& json, const VerifiedRuntime& runtime, const ScalesOnDisk& scales) {
  const RuntimeFate& fate = runtime.fate;
  json.begin_object().member("runtime", runtime.chosen.column->runtime);
  json.member("versions", versions_text(*runtime.chosen.column));
  text_or_null(json, "version", runtime.chosen.version);
  json.member("asked", runtime.asked).member("arrives", fate.arrives);
  json.member("turns_on", fate.turns_on).member("scales", fate_text(fate));
  verdict_json(json, fate.verdict);
  text_or_null(json, "serve", runtime.serve);
  texts(json, "fixes", runtime.fixes);
  drafts_json(json, runtime, scales);
  json.key("layers").begin_array();
  for (size_t i = 0; i < fate.layers.size(); ++i) {
    layer_json(json, fate.layers[i], scales.layers[i]);
  }
  json.end_array().end_object();
}

}  // namespace

std::string verify_json(const VerifyOptions& options, const VerifyReport& report) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.verify/1");
  json.member("path", utf8_name(options.path.string()));
  text_or_null(json, "kv_cache_dtype", options.kv_cache_dtype);
  text_or_null(json, "gpu", options.gpu);
  json.member("arrives", report.arrives);
  text_or_null(json, "refusal", report.refusal ? report.refusal->what() : "");
  json.member("runtime_facts", std::span<const std::string>(report.scales.facts.names()));
  json.member("layers_known", report.scales.layers_known).member("form", report.dialect);
  json.member("producer", report.provenance.producer);
  json.member("producer_version", report.provenance.producer_version);
  diagnoses_json(json, report.diagnoses);
  json.key("runtimes").begin_array();
  for (const VerifiedRuntime& each : report.runtimes) runtime_json(json, each, report.scales);
  json.end_array();
  return json.end_object().text();
}

}  // namespace fp8kv
