#include "show/scales/scales_text.h"

#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "report/evidence.h"
#include "show/output.h"
#include "show/scales/certificate_text.h"
#include "show/scales/summary_text.h"

namespace fp8kv {
namespace {

std::string scales_table(const KvScales& scales) {
  const bool per_head = scales.per_head();
  Table table(per_head ? std::vector<std::string>{"layer", "head", "K scale", "V scale"}
                       : std::vector<std::string>{"layer", "K scale", "V scale"},
              {false});
  for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
    const LayerScales& of_layer = scales.layers[layer];
    if (!of_layer.has_cache()) {
      std::vector<std::string> row = {cat(layer), "no cache", ""};
      if (per_head) row.insert(row.begin() + 1, "");
      table.add(std::move(row));
    }
    for (size_t head = 0; head < of_layer.k.size(); ++head) {
      std::vector<std::string> row = {cat(layer)};
      if (per_head) row.push_back(cat(head));
      row.push_back(cat(of_layer.k[head]));
      row.push_back(cat(of_layer.v[head]));
      table.add(std::move(row));
    }
  }
  for (const DraftScales& draft : scales.drafts) {
    for (size_t head = 0; head < draft.scales.k.size(); ++head) {
      std::vector<std::string> row = {plain(draft.layer)};
      if (per_head) row.push_back(cat(head));
      row.push_back(cat(draft.scales.k[head]));
      row.push_back(cat(draft.scales.v[head]));
      table.add(std::move(row));
    }
  }
  return table.text();
}

void scales_json(JsonWriter& json, const KvScales& scales, const std::string& form) {
  json.key("scales").begin_object().member("form", form);
  json.member("producer", scales.provenance.producer);
  json.member("producer_version", scales.provenance.producer_version);
  json.member("format", format_name(scales.format));
  json.member("granularity", scales.per_head() ? "head" : "tensor").key("layers").begin_array();
  for (const LayerScales& layer : scales.layers) {
    json.begin_object().member("k", std::span<const float>(layer.k));
    json.member("v", std::span<const float>(layer.v)).end_object();
  }
  json.end_array();
  if (!scales.drafts.empty()) {
    json.key("draft_layers").begin_array();
    for (const DraftScales& draft : scales.drafts) {
      json.begin_object().member("layer", draft.layer);
      json.member("k", std::span<const float>(draft.scales.k));
      json.member("v", std::span<const float>(draft.scales.v)).end_object();
    }
    json.end_array();
  }
  json.end_object();
}

std::string diagnoses_text(const std::vector<Diagnosis>& diagnoses) {
  std::string text;
  for (const Diagnosis& diagnosis : diagnoses) text += sentence(diagnosis_text(diagnosis)) + "\n";
  return text.empty() ? "" : "\n" + text;
}

// The line that says the scales belong to another model, if that was accepted when they were
// injected.
std::string foreign_text(const KvScales& scales) {
  const std::string& foreign = scales.provenance.accepted_foreign;
  return foreign.empty() ? "" : described("another model's", "accepted: " + plain(foreign));
}

}  // namespace

std::string unknown_keys_text(const std::vector<std::string>& keys) {
  if (keys.empty()) return "";
  return described("not known", cat("in config.json: ", plain(join(keys)),
                                    "; if it changes what the model computes, that is not done"));
}

void unknown_keys_json(JsonWriter& json, const std::vector<std::string>& keys) {
  if (!keys.empty()) json.member("unknown_config_keys", std::span(keys));
}

std::string quantised_text(const std::string& stored_as, const std::string& compute_dtype) {
  const std::string words = decoded_words(stored_as, compute_dtype);
  return words.empty() ? "" : described("weights", plain(words));
}

void quantised_json(JsonWriter& json, const std::string& stored_as) {
  if (!stored_as.empty()) json.member("quantised_weights", stored_as);
}

std::string templates_text(const std::vector<std::string>& templates) {
  if (templates.empty()) return "";
  return described(templates.size() == 1 ? "chat template" : "chat templates",
                   plain(join(templates)));
}

void templates_json(JsonWriter& json, const std::vector<std::string>& templates) {
  if (!templates.empty()) json.member("chat_templates", std::span(templates));
}

std::string described(const std::string& name, const std::string& value) {
  const std::string begin = name + std::string(name.size() < 18 ? 18 - name.size() : 1, ' ');
  return sentence(begin + terminal_line(value), begin.size()) + "\n";
}

std::string producer_text(const Provenance& provenance) {
  const std::string& version = provenance.producer_version;
  return plain(cat(provenance.producer, version.empty() ? "" : " ", version));
}

std::string found_scales_text(const FoundScales& found) {
  if (found.absent) return described("KV scales", "none") + diagnoses_text(found.diagnoses);
  std::string text =
      described("KV scales", cat(found.dialect, ", for ", format_name(found.scales.format), ", ",
                                 count_of(found.tensors.size(), "tensor")));
  const std::string producer = producer_text(found.scales.provenance);
  if (!producer.empty()) text += described("producer", producer);
  text += foreign_text(found.scales);
  text += "\n" + scales_table(found.scales) + diagnoses_text(found.diagnoses);
  if (has_evidence(found.scales)) text += "\n" + certificate_text(found.scales);
  return text;
}

void found_scales_json(JsonWriter& json, const FoundScales& found, const std::string& form) {
  if (!found.absent) scales_json(json, found.scales, form);
  const std::string& foreign = found.scales.provenance.accepted_foreign;
  if (!foreign.empty()) json.member("accepted_foreign", foreign);
  unknown_keys_json(json, found.scales.provenance.unknown_keys);
  quantised_json(json, found.scales.provenance.weights_from);
  templates_json(json, found.scales.provenance.chat_templates);
  diagnoses_json(json, found.diagnoses);
  if (has_evidence(found.scales)) certificate_json(json, found.scales);
}

std::string scale_file_description(const std::filesystem::path& path, const FoundScales& found) {
  const KvScales& scales = found.scales;
  const Provenance& provenance = scales.provenance;
  std::string text = has_evidence(scales)
                         ? summary_text(scales, serving_names(path, "", scales.format))
                         : std::string();
  text += described("scale file", plain(path.string()));
  text +=
      described("made by", plain(cat(provenance.source, provenance.tool_version.empty() ? "" : " ",
                                     provenance.tool_version)));
  const std::string producer = producer_text(provenance);
  if (!producer.empty()) text += described("producer", producer);
  text += described("for", cat(format_name(scales.format), ", one scale per ",
                               scales.per_head() ? "KV head" : "tensor"));
  if (!scales.model_type.empty()) text += described("model type", plain(scales.model_type));
  if (!provenance.model_fingerprint.empty()) {
    text += described("fingerprint", plain(provenance.model_fingerprint));
  }
  text += foreign_text(scales);
  text += unknown_keys_text(provenance.unknown_keys);
  text += quantised_text(provenance.weights_from, provenance.compute_dtype);
  text += templates_text(provenance.chat_templates);
  if (provenance.tokens > 0) {
    text += described("evidence", cat(count_of(provenance.tokens, "token"), " in ",
                                      count_of(provenance.windows, "window"), " of ",
                                      count_of(provenance.documents, "document")));
  }
  text += "\n" + scales_table(scales) + diagnoses_text(found.diagnoses);
  if (has_evidence(scales)) text += "\n" + certificate_text(scales);
  return text;
}

std::string scale_file_json(const std::filesystem::path& path, const FoundScales& found) {
  const Provenance& provenance = found.scales.provenance;
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.inspect/1").member("kind", "scale file");
  json.member("file", utf8_name(path.string())).member("model_type", found.scales.model_type);
  json.member("tokens", provenance.tokens).member("fingerprint", provenance.model_fingerprint);
  found_scales_json(json, found, provenance.source);
  return json.end_object().text();
}

std::string scale_folder_description(const std::filesystem::path& path, const std::string& address,
                                     const FoundScales& found) {
  const std::string place = address.empty() ? described("folder", plain(path.string()))
                                            : described("address", plain(address));
  return place + found_scales_text(found);
}

std::string scale_folder_json(const std::filesystem::path& path, const std::string& address,
                              const FoundScales& found) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.inspect/1").member("kind", "scales");
  json.member("folder", utf8_name(path.string()));
  if (!address.empty()) json.member("address", address);
  found_scales_json(json, found, found.dialect);
  return json.end_object().text();
}

void diagnoses_json(JsonWriter& json, std::span<const Diagnosis> diagnoses) {
  json.key("diagnoses").begin_array();
  for (const Diagnosis& diagnosis : diagnoses) {
    json.begin_object().member("id", diagnosis.id).member("sentence", diagnosis.sentence);
    json.member("remedy", diagnosis.remedy).member("harmless", diagnosis.harmless).end_object();
  }
  json.end_array();
}

}  // namespace fp8kv
