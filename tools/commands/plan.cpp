#include <filesystem>
#include <optional>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/describe_checkpoint.h"
#include "cli/kv_dtype.h"
#include "cli/output.h"
#include "commands/commands.h"
#include "config/describe_model.h"
#include "config/language_config.h"
#include "json/json.h"
#include "model/capacity.h"
#include "show/description_text.h"

namespace fp8kv {
namespace {

struct Subject {
  ModelDescription model;
  std::optional<WeightBytes> weights;  // absent: the folder has only its config
  Deployment deployment;
  DType own;  // what a cache holds unless told otherwise: the model's dtype
};

DType own_dtype(const Json& config, const std::filesystem::path& file) {
  const auto name = find_dtype(config);
  if (!name) {
    throw Error(cat(quote(file.string()), ": names no dtype"),
                "add the \"torch_dtype\" of the model to it");
  }
  const auto dtype = dtype_from_torch_name(name->as_string());
  if (dtype) return *dtype;
  fail(name->where(), ": is ", quote(name->as_string()), ", which is no dtype");
}

int64_t context_of(const PlanOptions& options, const ModelDescription& model) {
  if (options.context > 0) return options.context;
  if (model.max_seq_len > 0) return model.max_seq_len;
  throw Error(cat(quote(options.model.string()), ": does not say how long its context is"),
              "pass --context", ErrorKind::usage);
}

// A folder with a config.json and nothing that could be weights, as someone has it who asks before
// fetching 140 GB. Anything between that and a model is an error of Checkpoint::open.
bool is_bare(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "config.json")) return false;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    for (const char* weights : {".safetensors", ".bin", ".pt", ".pth"}) {
      if (entry.path().extension() == weights) return false;
    }
  }
  return true;
}

Subject subject_of(const PlanOptions& options) {
  const bool bare = is_bare(options.model);
  if (bare && options.memory > 0) {
    throw Error(cat(quote(options.model.string()),
                    ": has no weights, so what they leave of --memory is not known"),
                "leave out --memory, or fetch the model", ErrorKind::usage);
  }
  std::optional<Checkpoint> checkpoint;
  if (!bare) checkpoint = Checkpoint::open(options.model);
  const std::filesystem::path file = options.model / "config.json";
  const Json config = bare ? Json::read(file) : checkpoint->config();
  Subject subject{
      bare ? describe_model(config) : describe_model(*checkpoint), {}, {}, own_dtype(config, file)};
  if (subject.model.unclear) throw *subject.model.unclear;
  if (!bare) subject.weights = weight_bytes(*checkpoint);
  with_context(cat("--tp ", options.tp), [&] { kv_heads_per_gpu(subject.model, options.tp); });
  subject.deployment = {options.memory, options.tp, options.batch,
                        context_of(options, subject.model)};
  return subject;
}

// With the KV heads that one of `tp` GPUs holds.
ModelDescription share_of_gpu(ModelDescription model, int64_t tp) {
  ModelDescription one = model;
  for (LayerDescription& layer : model.layers) {
    if (layer.n_kv_heads == 0) continue;
    one.layers = {layer};
    layer.n_kv_heads = kv_heads_per_gpu(one, tp);
  }
  return model;
}

// Layers that write a cache and are of this kind.
uint64_t caches_of(const ModelDescription& model, Mixing mixing) {
  uint64_t count = 0;
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    count += model.writes_cache(i) && model.layer(i).mixing == mixing;
  }
  return count;
}

// ", 3 with a window": where there are layers that keep no more than the last tokens of a sequence.
std::string kept_parts(const ModelDescription& model) {
  const uint64_t windows = caches_of(model, Mixing::window);
  const uint64_t chunks = caches_of(model, Mixing::chunks);
  return (windows > 0 ? cat(", ", windows, " with a window") : "") +
         (chunks > 0 ? cat(", ", chunks, " with chunks") : "");
}

std::string entry(const std::string& name, const std::string& value) {
  return name + std::string(12 - name.size(), ' ') + value + "\n";
}

std::string weights_text(const Subject& subject) {
  if (!subject.weights) return "none here";
  const int64_t tp = subject.deployment.tp;
  const uint64_t all = subject.weights->all;
  const std::string per_gpu = human_bytes(all / static_cast<uint64_t>(tp));
  return human_bytes(all) + (tp > 1 ? cat(", ", per_gpu, " on each of ", tp, " GPUs") : "");
}

std::string heading(const Subject& subject) {
  const Deployment& on = subject.deployment;
  std::string text =
      entry("cache",
            cat(count_of(static_cast<uint64_t>(subject.model.cache_layers()), "layer"),
                kept_parts(subject.model), "; ", kv_heads_text(share_of_gpu(subject.model, on.tp)),
                on.tp > 1 ? " on each GPU" : ""));
  text += entry("weights", weights_text(subject));
  if (on.memory > 0) text += entry("memory", human_bytes(on.memory) + (on.tp > 1 ? " each" : ""));
  return text +
         entry("sequences", cat("of ", count_of(static_cast<uint64_t>(on.context), "token"), "; ",
                                grouped(static_cast<uint64_t>(on.batch)), " in a decode step"));
}

std::string table_of(const Subject& subject, const std::vector<CachePlan>& plans) {
  const bool memory = subject.deployment.memory > 0;
  std::vector<std::string> header = {"KV cache", "bytes a token", "a sequence"};
  if (memory) header.insert(header.end(), {"tokens that fit", "sequences"});
  if (subject.weights) header.insert(header.end(), {"read in a step", "gain"});
  Table table(header);
  for (const CachePlan& plan : plans) {
    std::vector<std::string> row = {kv_dtype_name(plan.dtype), grouped(plan.bytes_per_token),
                                    human_bytes(plan.bytes_per_sequence)};
    if (memory) row.insert(row.end(), {grouped(plan.tokens), grouped(plan.sequences)});
    if (subject.weights) {
      row.insert(row.end(), {human_bytes(plan.step_bytes), fixed(plan.gain, 2) + "x"});
    }
    table.add(std::move(row));
  }
  return table.text();
}

std::string notes(const Subject& subject, const std::vector<CachePlan>& plans) {
  if (!subject.weights) {
    return "\nThe folder has no weights: what fits beside them, and what a decode step reads, is "
           "not "
           "known.\n";
  }
  std::string text = cat("\ngain: bytes read in a decode step with a ", kv_dtype_name(subject.own),
                         " cache over those with this one; what a step that\nis bound by memory "
                         "can gain in speed.");
  const Deployment& on = subject.deployment;
  if (subject.weights->experts) {
    text += " All experts are counted: a small batch reads fewer,\nand gains more.";
  }
  if (on.memory == 0) return text + "\n";
  text += " Activations and the runtime need memory too: it is not\nset aside here.\n";
  std::vector<std::string> short_of;
  for (const CachePlan& plan : plans) {
    if (plan.sequences < static_cast<uint64_t>(on.batch)) {
      short_of.push_back(kv_dtype_name(plan.dtype));
    }
  }
  if (plans[0].free_bytes == 0) {
    text += "the weights alone do not fit: give it more memory, or share it with --tp\n";
  } else if (!short_of.empty()) {
    text += cat("a step of ", grouped(static_cast<uint64_t>(on.batch)), " does not fit with ",
                join(short_of), "\n");
  }
  return text;
}

std::string json_of(const Subject& subject, const std::vector<CachePlan>& plans) {
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
    json.begin_object().member("kv_cache_dtype", kv_dtype_name(plan.dtype));
    json.member("bytes_per_token", plan.bytes_per_token);
    json.member("bytes_per_sequence", plan.bytes_per_sequence);
    if (on.memory > 0) {
      json.member("free_bytes", plan.free_bytes).member("tokens", plan.tokens);
      json.member("sequences", plan.sequences);
    }
    if (weights) json.member("step_bytes", plan.step_bytes).member("gain", plan.gain);
    json.end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace

void run_command(const PlanOptions& options) {
  const Subject subject = subject_of(options);
  std::vector<CachePlan> plans;
  for (const std::optional<DType>& asked : options.kv_cache_dtypes) {
    const DType dtype = asked.value_or(subject.own);
    plans.push_back(plan_cache(subject.model, subject.weights.value_or(WeightBytes()),
                               subject.deployment, dtype, subject.own));
  }
  print(options.json ? json_of(subject, plans)
                     : heading(subject) + "\n" + table_of(subject, plans) + notes(subject, plans));
}

}  // namespace fp8kv
