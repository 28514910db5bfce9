#include <algorithm>
#include <map>

#include "base/error.h"
#include "checkpoint/describe_checkpoint.h"
#include "checkpoint/fingerprint.h"
#include "checkpoint/read_model_config.h"
#include "cli/kv_dtype.h"
#include "cli/output.h"
#include "commands/commands.h"
#include "inputs/scale_source.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "scales/read/open_store.h"
#include "show/certificate_text.h"
#include "show/description_text.h"
#include "show/runtime_report.h"

namespace fp8kv {
namespace {

// Bytes and counts of a checkpoint's tensors by dtype.
struct DTypeShare {
  uint64_t tensors = 0;
  uint64_t bytes = 0;
};

std::map<std::string, DTypeShare> shares_of(const std::vector<TensorEntry>& tensors) {
  std::map<std::string, DTypeShare> shares;
  for (const TensorEntry& entry : tensors) {
    DTypeShare& share = shares[std::string(dtype_name(entry.dtype))];
    ++share.tensors;
    share.bytes += entry.end - entry.begin;
  }
  return shares;
}

std::vector<TensorEntry> all_tensors(const Checkpoint& checkpoint) {
  std::vector<TensorEntry> entries;
  for (const Shard& shard : checkpoint.shards()) {
    entries.insert(entries.end(), shard.header.tensors.begin(), shard.header.tensors.end());
  }
  return entries;
}

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
  return table.text();
}

void scales_json(JsonWriter& json, const KvScales& scales, const std::string& form) {
  json.key("scales").begin_object().member("form", form);
  json.member("format", format_name(scales.format));
  json.member("granularity", scales.per_head() ? "head" : "tensor").key("layers").begin_array();
  for (const LayerScales& layer : scales.layers) {
    json.begin_object().member("k", std::span<const float>(layer.k));
    json.member("v", std::span<const float>(layer.v)).end_object();
  }
  json.end_array().end_object();
}

std::string line(const std::string& name, const std::string& value) {
  return name + std::string(name.size() < 18 ? 18 - name.size() : 1, ' ') + value + "\n";
}

std::string diagnoses_text(const std::vector<Diagnosis>& diagnoses) {
  std::string text;
  for (const Diagnosis& diagnosis : diagnoses) text += diagnosis_text(diagnosis) + "\n";
  return text.empty() ? "" : "\n" + text;
}

// The line "KV scales" and what follows from it.
std::string scales_text(const FoundScales& found) {
  if (found.absent) return line("KV scales", "none") + diagnoses_text(found.diagnoses);
  std::string text =
      line("KV scales", cat(found.dialect, ", for ", format_name(found.scales.format), ", ",
                            count_of(found.tensors.size(), "tensor")));
  text += "\n" + scales_table(found.scales) + diagnoses_text(found.diagnoses);
  if (has_evidence(found.scales)) text += "\n" + certificate_text(found.scales);
  return text;
}

struct CheckpointView {
  const Checkpoint& checkpoint;
  ModelDescription model;
  std::optional<std::string> fingerprint;  // absent: no K and V projections of their own
  std::optional<Error> not_runnable;
  FoundScales found;
};

// The heads of the layers, and how many have a cache of their own where that is not all.
std::string layers_text(const ModelDescription& model) {
  std::string text =
      line("layers", cat(model.n_layers(), "; ", model.n_heads, " heads, ", kv_heads_text(model)));
  if (model.unclear) {
    text += line("KV cache", cat("not known: ", model.unclear->what()));
  } else if (model.cache_layers() < model.n_layers()) {
    text += line("KV cache", cat("in ", model.cache_layers(), " of ", model.n_layers(), " layers"));
  }
  return text;
}

// What a person reads of a checkpoint.
std::string describe(const CheckpointView& view) {
  const ModelDescription& model = view.model;
  const std::string verdict =
      view.not_runnable ? cat("not runnable here: ", view.not_runnable->what()) : "supported";
  std::string text = line("folder", plain(view.checkpoint.folder().string()));
  text += line("architecture",
               cat(plain(model.architecture), " (", plain(model.model_type), "), ", verdict));
  text += layers_text(model);
  if (model.max_seq_len > 0) text += line("context", cat(model.max_seq_len, " tokens"));
  uint64_t bytes = 0;
  for (const Shard& shard : view.checkpoint.shards()) bytes += shard.bytes;
  text += line("shards",
               cat(count_of(view.checkpoint.shards().size(), "file"), ", ", human_bytes(bytes)));
  for (const auto& [name, share] : shares_of(all_tensors(view.checkpoint))) {
    text +=
        line("  " + name, cat(count_of(share.tensors, "tensor"), ", ", human_bytes(share.bytes)));
  }
  if (view.fingerprint) text += line("fingerprint", *view.fingerprint);
  text += scales_text(view.found);
  if (model.unclear) return text;
  const std::string table = cache_table(model);
  return table.empty() ? text : text + "\n" + table;
}

std::string checkpoint_json(const CheckpointView& view) {
  const ModelDescription& model = view.model;
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.inspect/1").member("kind", "checkpoint");
  json.member("folder", utf8_name(view.checkpoint.folder().string()));
  json.member("architecture", model.architecture).member("model_type", model.model_type);
  json.member("supported", !view.not_runnable).member("n_layers", model.n_layers());
  json.member("n_heads", model.n_heads).member("n_kv_heads", model.n_kv_heads());
  json.member("head_dim", model.head_dim()).member("max_seq_len", model.max_seq_len);
  if (view.fingerprint) json.member("fingerprint", *view.fingerprint);
  json.key("shards").begin_array();
  for (const Shard& shard : view.checkpoint.shards()) {
    json.begin_object().member("file", shard.file).member("bytes", shard.bytes).end_object();
  }
  json.end_array().key("dtypes").begin_object();
  for (const auto& [name, share] : shares_of(all_tensors(view.checkpoint))) {
    json.key(name).begin_object().member("tensors", share.tensors);
    json.member("bytes", share.bytes).end_object();
  }
  json.end_object();
  layers_json(json, model);
  if (!view.found.absent) scales_json(json, view.found.scales, view.found.dialect);
  diagnoses_json(json, view.found.diagnoses);
  if (has_evidence(view.found.scales)) certificate_json(json, view.found.scales);
  return json.end_object().text();
}

// What --certificate asks for: the certificate of any source of scales, and nothing else.
void inspect_certificate(const InspectOptions& options) {
  Log log(options.verbosity);
  const KvScales scales = load_scales(options.path, log);
  const std::string source = quote(options.path.string());
  if (!has_evidence(scales)) {
    throw Error(cat(source,
                    ": has scales, but not the magnitudes that they were made from, so "
                    "there is nothing to certify them by"),
                "a scale file of 'fp8kv calibrate' has them");
  }
  if (!options.json) return print(certificate_text(scales));
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.inspect/1").member("kind", "certificate");
  json.member("source", utf8_name(options.path.string()));
  certificate_json(json, scales);
  print(json.end_object().text());
}

// For scales that are there, but cannot be used.
void throw_refusal(const InspectOptions& options, const FoundScales& found) {
  if (found.absent || !found.refusal) return;
  Log log(options.verbosity);
  say_diagnoses(options.path, found.diagnoses, log);
  throw *found.refusal;
}

// A folder that has scales, but no model that could be run.
void inspect_scale_folder(const InspectOptions& options) {
  const FoundScales found = survey_scales(options.path);
  throw_refusal(options, found);
  if (!options.json) {
    return print(line("folder", plain(options.path.string())) + scales_text(found));
  }
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.inspect/1").member("kind", "scales");
  json.member("folder", utf8_name(options.path.string()));
  if (!found.absent) scales_json(json, found.scales, found.dialect);
  diagnoses_json(json, found.diagnoses);
  print(json.end_object().text());
}

void inspect_checkpoint(const InspectOptions& options) {
  const Checkpoint checkpoint = Checkpoint::open(options.path);
  CheckpointView view{checkpoint, describe_model(checkpoint), {}, {}, {}};
  try {
    read_model_config(checkpoint);
  } catch (const Error& error) {
    view.not_runnable = error;
  }
  view.found = survey_scales(checkpoint);
  throw_refusal(options, view.found);
  view.fingerprint = find_fingerprint(checkpoint, view.model);
  print(options.json ? checkpoint_json(view) : describe(view));
}

void inspect_safetensors(const InspectOptions& options) {
  const SafetensorsHeader header = read_safetensors_header(options.path);
  if (options.json) {
    JsonWriter json;
    json.begin_object().member("schema", "fp8kv.inspect/1").member("kind", "safetensors");
    json.member("file", utf8_name(options.path.string())).key("tensors").begin_array();
    for (const TensorEntry& entry : header.tensors) {
      json.begin_object().member("name", entry.name).member("dtype", dtype_name(entry.dtype));
      json.key("shape").begin_array();
      for (size_t i = 0; i < entry.shape.rank(); ++i) json.value(entry.shape[i]);
      json.end_array().member("bytes", entry.end - entry.begin);
      json.end_object();
    }
    print(json.end_array().end_object().text());
    return;
  }
  Table table({"tensor", "dtype", "shape", "bytes"}, {true, true, true});
  for (const TensorEntry& entry : header.tensors) {
    table.add({plain(entry.name), std::string(dtype_name(entry.dtype)), entry.shape.text(),
               grouped(entry.end - entry.begin)});
  }
  print(table.text());
}

void inspect_scale_file(const InspectOptions& options) {
  const FoundScales found = survey_scales(options.path);
  const KvScales& scales = found.scales;
  const Provenance& provenance = scales.provenance;
  if (options.json) {
    JsonWriter json;
    json.begin_object().member("schema", "fp8kv.inspect/1").member("kind", "scale file");
    json.member("file", utf8_name(options.path.string())).member("model_type", scales.model_type);
    json.member("tokens", provenance.tokens).member("fingerprint", provenance.model_fingerprint);
    scales_json(json, scales, provenance.source);
    diagnoses_json(json, found.diagnoses);
    if (has_evidence(scales)) certificate_json(json, scales);
    print(json.end_object().text());
    return;
  }
  std::string text = line("scale file", plain(options.path.string()));
  text += line("made by", plain(cat(provenance.source, provenance.tool_version.empty() ? "" : " ",
                                    provenance.tool_version)));
  text += line("for", cat(format_name(scales.format), ", one scale per ",
                          scales.per_head() ? "KV head" : "tensor"));
  if (!scales.model_type.empty()) text += line("model type", plain(scales.model_type));
  if (!provenance.model_fingerprint.empty()) {
    text += line("fingerprint", plain(provenance.model_fingerprint));
  }
  if (provenance.tokens > 0) {
    text += line("evidence", cat(count_of(provenance.tokens, "token"), " in ",
                                 count_of(provenance.windows, "window"), " of ",
                                 count_of(provenance.documents, "document")));
  }
  text += "\n" + scales_table(scales) + diagnoses_text(found.diagnoses);
  if (has_evidence(scales)) text += "\n" + certificate_text(scales);
  print(text);
}

// Instead of the description, which needs scales that can be used.
void inspect_runtimes(const InspectOptions& options) {
  const FactSet facts = facts_of(options.path);
  if (!options.json) return print(runtimes_table(facts));
  JsonWriter json;
  json.begin_object()
      .member("schema", "fp8kv.runtimes/1")
      .member("path", utf8_name(options.path.string()));
  runtimes_json(json, facts);
  print(json.end_object().text());
}

}  // namespace

void run_command(const InspectOptions& options) {
  if (options.certificate) return inspect_certificate(options);
  if (options.runtimes) return inspect_runtimes(options);
  if (is_scale_folder(options.path)) return inspect_scale_folder(options);
  if (std::filesystem::is_directory(options.path)) return inspect_checkpoint(options);
  if (options.path.extension() == ".safetensors") return inspect_safetensors(options);
  if (!std::filesystem::exists(options.path)) {
    throw Error(cat(quote(options.path.string()), ": no such file or folder"), "check the path");
  }
  inspect_scale_file(options);
}

}  // namespace fp8kv
