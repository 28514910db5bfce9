#include "show/models/plan_text.h"

#include <algorithm>

#include "base/duration.h"
#include "base/text.h"
#include "json/json.h"
#include "options/kv_dtype.h"
#include "show/models/description_text.h"
#include "show/output.h"

namespace fp8kv {
namespace {

// The model with the KV heads that each of `tp` GPUs holds.
ModelDescription share_of_gpu(ModelDescription model, int64_t tp) {
  ModelDescription one = model;
  for (LayerDescription& layer : model.layers) {
    if (layer.n_kv_heads == 0) continue;
    one.layers = {layer};
    layer.n_kv_heads = kv_heads_per_gpu(one, tp);
  }
  return model;
}

// The number of layers of this kind that write a cache.
uint64_t caches_of(const ModelDescription& model, Mixing mixing) {
  uint64_t count = 0;
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    count += model.writes_cache(i) && model.layer(i).mixing == mixing;
  }
  return count;
}

// ", 3 with a window": the number of layers that keep only the last tokens of a sequence.
std::string kept_parts(const ModelDescription& model) {
  const uint64_t windows = caches_of(model, Mixing::window);
  const uint64_t chunks = caches_of(model, Mixing::chunks);
  return (windows > 0 ? cat(", ", windows, " with a window") : "") +
         (chunks > 0 ? cat(", ", chunks, " with chunks") : "");
}

std::string entry(const std::string& name, const std::string& value) {
  constexpr size_t kNames = 12;
  return sentence(name + std::string(kNames - name.size(), ' ') + value, kNames) + "\n";
}

std::string weights_text(const PlanSubject& subject) {
  if (!subject.weights) return "none here";
  const int64_t tp = subject.deployment.tp;
  const uint64_t all = subject.weights->all;
  const std::string per_gpu = human_bytes(all / static_cast<uint64_t>(tp));
  return human_bytes(all) + (tp > 1 ? cat(", ", per_gpu, " on each of ", tp, " GPUs") : "");
}

// "states      18 layers; 6.05 MiB a sequence". Layers keep states instead of a cache, or beside
// it.
std::string states_text(const ModelDescription& model, int64_t tp) {
  uint64_t layers = 0, bytes = 0, unknown = 0;
  for (const LayerDescription& layer : model.layers) {
    if (layer.mixing != Mixing::recurrent && layer.state_bytes == 0) continue;
    ++layers;
    bytes += layer.state_bytes;
    unknown += layer.state_bytes == 0;
  }
  if (layers == 0) return "";
  const std::string known = unknown > 0
                                ? std::string("their size is not known, and not counted")
                                : cat(human_bytes(bytes / static_cast<uint64_t>(tp)), " a sequence",
                                      tp > 1 ? " on each GPU" : "", ", whatever the cache holds");
  return entry("states", cat(count_of(layers, "layer"), "; ", known));
}

// "indexers    61 layers; 132 bytes a token and layer". The keys of indexers choose tokens.
std::string indexers_text(const ModelDescription& model) {
  uint64_t layers = 0;
  int64_t bytes = 0;
  for (const LayerDescription& layer : model.layers) {
    layers += layer.index_bytes > 0;
    bytes = std::max(bytes, layer.index_bytes);
  }
  if (layers == 0) return "";
  return entry("indexers", cat(count_of(layers, "layer"), "; ", bytes,
                               " bytes a token and layer, whatever the cache holds"));
}

// "pools       41 layers; 146 bytes a token and layer". Pooled rows are seen beside a window.
std::string pools_text(const ModelDescription& model) {
  uint64_t layers = 0;
  int64_t bytes = 0;
  for (const LayerDescription& layer : model.layers) {
    layers += layer.pool > 0;
    bytes = std::max(bytes, layer.pool_bytes);
  }
  if (layers == 0) return "";
  return entry("pools", cat(count_of(layers, "layer"), "; up to ", bytes,
                            " bytes a token and layer, whatever the cache holds"));
}

std::string heading(const PlanSubject& subject) {
  const Deployment& on = subject.deployment;
  std::string text =
      entry("cache",
            cat(count_of(static_cast<uint64_t>(subject.model.cache_layers()), "layer"),
                kept_parts(subject.model), "; ", kv_heads_text(share_of_gpu(subject.model, on.tp)),
                on.tp > 1 ? " on each GPU" : ""));
  text += indexers_text(subject.model);
  text += pools_text(subject.model);
  text += states_text(subject.model, on.tp);
  text += entry("weights", weights_text(subject));
  if (on.memory > 0) {
    text += entry("memory", cat(human_bytes(on.memory), on.tp > 1 ? " each" : "",
                                subject.memory_note.empty() ? "" : ", ", subject.memory_note));
  }
  return text +
         entry("sequences", cat("of ", count_of(static_cast<uint64_t>(on.context), "token"), "; ",
                                grouped(static_cast<uint64_t>(on.batch)), " in a decode step"));
}

// "calibrate   512 windows of 2,048 tokens: about 14 min on cpu: AVX2, 2 threads".
std::string time_text(const CalibrationTime& time) {
  std::string text;
  for (const MachineTime& each : time.machines) {
    const std::string what = cat(count_of(time.windows, "window"), " of ",
                                 count_of(static_cast<uint64_t>(time.tokens), "token"), ": about ");
    text += entry(text.empty() ? "calibrate" : "",
                  cat(text.empty() ? what : "", duration(each.seconds), " on ", each.machine));
  }
  return text;
}

std::string table_of(const PlanSubject& subject, const std::vector<CachePlan>& plans) {
  const bool memory = subject.deployment.memory > 0;
  std::vector<std::string> header = {"KV cache", "bytes a token", "a sequence"};
  if (memory) header.insert(header.end(), {"tokens that fit", "sequences"});
  if (subject.weights) header.insert(header.end(), {"read in a step", "gain"});
  Table table(header);
  for (const CachePlan& plan : plans) {
    std::vector<std::string> row = {plan.name, grouped(plan.bytes_per_token),
                                    human_bytes(plan.bytes_per_sequence)};
    if (memory) row.insert(row.end(), {grouped(plan.tokens), grouped(plan.sequences)});
    if (subject.weights) {
      row.insert(row.end(), {human_bytes(plan.step_bytes), fixed(plan.gain, 2) + "x"});
    }
    table.add(std::move(row));
  }
  return table.text();
}

std::string notes(const PlanSubject& subject, const std::vector<CachePlan>& plans) {
  if (!subject.weights) {
    const std::string unknown =
        ": what fits beside them, and what a decode step reads, is not known";
    const std::string known =
        subject.lfs_pointer.empty()
            ? cat("The folder has no weights", unknown, ".")
            : cat(quote(subject.lfs_pointer), " is a git-LFS pointer, not weights", unknown,
                  "\nbefore 'git lfs pull'.");
    return "\n" + sentence(known) + "\n";
  }
  std::string gain = cat("gain: bytes read in a decode step with a ", kv_dtype_name(subject.own),
                         " cache over those with this one; what a step that\nis bound by memory "
                         "can gain in speed.");
  const Deployment& on = subject.deployment;
  if (subject.weights->experts) {
    gain += " All experts are counted: a small batch reads fewer,\nand gains more.";
  }
  if (on.memory == 0) return "\n" + sentence(gain) + "\n";
  gain += " Activations and the runtime need memory too: it is not\nset aside here.";
  std::string text = "\n" + sentence(gain) + "\n";
  std::vector<std::string> short_of;
  for (const CachePlan& plan : plans) {
    if (plan.sequences < static_cast<uint64_t>(on.batch)) {
      short_of.push_back(plan.name);
    }
  }
  if (plans[0].free_bytes == 0) {
    text += sentence("the weights alone do not fit: give it more memory, or share it with --tp");
    text += "\n";
  } else if (!short_of.empty()) {
    text += sentence(cat("a step of ", grouped(static_cast<uint64_t>(on.batch)),
                         " does not fit with ", join(short_of))) +
            "\n";
  }
  return text;
}

}  // namespace

std::string plan_text(const PlanSubject& subject, const std::vector<CachePlan>& plans) {
  const std::string time = subject.calibration ? time_text(*subject.calibration) : "";
  return heading(subject) + time + "\n" + table_of(subject, plans) + notes(subject, plans);
}

std::string plan_json(const PlanSubject& subject, const std::vector<CachePlan>& plans) {
  const Deployment& on = subject.deployment;
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.plan/1");
  json.member("architecture", subject.model.architecture);
  json.member("n_layers", subject.model.n_layers())
      .member("cache_layers", subject.model.cache_layers());
  json.member("window_layers", caches_of(subject.model, Mixing::window));
  json.member("chunk_layers", caches_of(subject.model, Mixing::chunks)).member("tp", on.tp);
  json.member("kv_heads_per_gpu", kv_heads_per_gpu(subject.model, on.tp));
  const auto& weights = subject.weights;
  json.key("weight_bytes");
  weights ? json.value(weights->all) : json.null();
  json.key("weight_bytes_read");
  weights ? json.value(weights->read) : json.null();
  json.key("experts");
  weights ? json.value(weights->experts) : json.null();
  json.key("memory_bytes");
  on.memory > 0 ? json.value(on.memory) : json.null();
  json.member("batch", on.batch).member("context", on.context);
  json.member("baseline", kv_dtype_name(subject.own)).key("plans").begin_array();
  for (const CachePlan& plan : plans) {
    json.begin_object().member("kv_cache_dtype", plan.name);
    json.member("bytes_per_token", plan.bytes_per_token);
    json.member("bytes_per_sequence", plan.bytes_per_sequence);
    json.member("state_bytes", plan.state_bytes);
    if (on.memory > 0) {
      json.member("free_bytes", plan.free_bytes).member("tokens", plan.tokens);
      json.member("sequences", plan.sequences);
    }
    if (weights) json.member("step_bytes", plan.step_bytes).member("gain", plan.gain);
    json.end_object();
  }
  json.end_array();
  if (const auto& time = subject.calibration) {
    json.key("calibration").begin_object().member("windows", time->windows);
    json.member("tokens_per_window", time->tokens).key("machines").begin_array();
    for (const MachineTime& each : time->machines) {
      json.begin_object().member("device", each.machine).member("seconds", each.seconds);
      json.end_object();
    }
    json.end_array().end_object();
  }
  return json.end_object().text();
}

}  // namespace fp8kv
