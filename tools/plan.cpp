#include "base/error.h"
#include "base/json.h"
#include "commands.h"
#include "io/architectures.h"
#include "io/cache_layers.h"
#include "io/checkpoint.h"
#include "kv_dtype.h"
#include "model/capacity.h"
#include "output.h"

namespace fp8kv {
namespace {

struct Subject {
  ModelConfig shape;
  std::vector<CacheLayer> layers;
  WeightBytes weights;
  Deployment deployment;
  DType own;  // what a cache holds unless told otherwise: the model's dtype
};

DType own_dtype(const Checkpoint& checkpoint) {
  const Json& config = checkpoint.config();
  const Json text = config.find("text_config").value_or(config);
  for (const Json* holder : {&config, &text}) {
    for (const char* key : {"dtype", "torch_dtype"}) {
      const auto name = holder->find(key);
      if (!name) continue;
      const auto dtype = dtype_from_torch_name(name->as_string());
      if (dtype) return *dtype;
      fail(name->where(), ": is ", quote(name->as_string()), ", which is no dtype");
    }
  }
  throw Error(cat(quote(checkpoint.config_path().string()), ": names no dtype"),
              "add the \"torch_dtype\" of the model to it");
}

int64_t context_of(const PlanOptions& options, const ModelConfig& shape) {
  if (options.context > 0) return options.context;
  if (shape.max_seq_len > 0) return shape.max_seq_len;
  throw Error(cat(quote(options.model.string()), ": does not say how long its context is"),
              "pass --context", ErrorKind::usage);
}

Subject subject_of(const PlanOptions& options) {
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  Subject subject{parse_model_shape(checkpoint.config()),
                  parse_cache_layers(checkpoint.config()),
                  weight_bytes(checkpoint),
                  {},
                  own_dtype(checkpoint)};
  check_cache_layers(checkpoint, subject.layers, subject.shape.n_kv_heads);
  subject.deployment = {options.memory, options.tp, options.batch,
                        context_of(options, subject.shape)};
  return subject;
}

uint64_t layers_that(const Subject& subject, bool (*is)(const CacheLayer&)) {
  return static_cast<uint64_t>(std::count_if(subject.layers.begin(), subject.layers.end(), is));
}

uint64_t holding(const Subject& subject) {
  return layers_that(subject, [](const CacheLayer& layer) { return layer.k_elements > 0; });
}

uint64_t windowed(const Subject& subject) {
  return layers_that(subject, [](const CacheLayer& layer) { return layer.window > 0; });
}

std::string line(const std::string& name, const std::string& value) {
  return name + std::string(12 - name.size(), ' ') + value + "\n";
}

std::string heading(const Subject& subject) {
  const Deployment& on = subject.deployment;
  const uint64_t per_gpu = subject.weights.all / static_cast<uint64_t>(on.tp);
  const uint64_t n_windowed = windowed(subject);
  std::string text =
      line("cache",
           cat(count_of(holding(subject), "layer"),
               n_windowed > 0 ? cat(", ", n_windowed, " with a window") : "", "; ",
               count_of(static_cast<uint64_t>(kv_heads_per_gpu(subject.shape, on.tp)), "KV head"),
               " of ", subject.shape.head_dim, on.tp > 1 ? " on each GPU" : ""));
  text +=
      line("weights",
           cat(human_bytes(subject.weights.all),
               on.tp > 1 ? cat(", ", human_bytes(per_gpu), " on each of ", on.tp, " GPUs") : ""));
  if (on.memory > 0) text += line("memory", human_bytes(on.memory) + (on.tp > 1 ? " each" : ""));
  return text +
         line("sequences", cat("of ", count_of(static_cast<uint64_t>(on.context), "token"), "; ",
                               grouped(static_cast<uint64_t>(on.batch)), " in a decode step"));
}

std::string table_of(const Subject& subject, const std::vector<CachePlan>& plans) {
  const bool memory = subject.deployment.memory > 0;
  std::vector<std::string> header = {"KV cache", "bytes a token", "a sequence"};
  if (memory) header.insert(header.end(), {"tokens that fit", "sequences"});
  header.insert(header.end(), {"read in a step", "gain"});
  Table table(header);
  for (const CachePlan& plan : plans) {
    std::vector<std::string> row = {kv_dtype_name(plan.dtype), grouped(plan.bytes_per_token),
                                    human_bytes(plan.bytes_per_sequence)};
    if (memory) row.insert(row.end(), {grouped(plan.tokens), grouped(plan.sequences)});
    row.insert(row.end(), {human_bytes(plan.step_bytes), fixed(plan.gain, 2) + "x"});
    table.add(std::move(row));
  }
  return table.text();
}

std::string notes(const Subject& subject, const std::vector<CachePlan>& plans) {
  std::string text = cat("\ngain: bytes read in a decode step with a ", kv_dtype_name(subject.own),
                         " cache over those with this one; what a step that\nis bound by memory "
                         "can gain in speed.");
  const Deployment& on = subject.deployment;
  if (subject.weights.experts) {
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
  json.member("architecture", subject.shape.architecture);
  json.member("n_layers", subject.shape.n_layers).member("cache_layers", holding(subject));
  json.member("window_layers", windowed(subject)).member("tp", on.tp);
  json.member("kv_heads_per_gpu", kv_heads_per_gpu(subject.shape, on.tp));
  json.member("weight_bytes", subject.weights.all);
  json.member("weight_bytes_read", subject.weights.read);
  json.member("experts", subject.weights.experts).key("memory_bytes");
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
    json.member("step_bytes", plan.step_bytes).member("gain", plan.gain).end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace

void run_command(const PlanOptions& options) {
  const Subject subject = subject_of(options);
  std::vector<CachePlan> plans;
  for (const std::string& name : options.kv_cache_dtypes) {
    const DType dtype = kv_dtype_from_name(name).value_or(subject.own);
    plans.push_back(plan_cache(subject.shape, subject.layers, subject.weights, subject.deployment,
                               dtype, subject.own));
  }
  print(options.json ? json_of(subject, plans)
                     : heading(subject) + "\n" + table_of(subject, plans) + notes(subject, plans));
}

}  // namespace fp8kv
