#include "checkpoint/quant_methods.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/linear_modules.h"

namespace fp8kv {
namespace {

// One statement in a config about the type of the cache.
struct Statement {
  std::string text;
  std::optional<KvFormat> cache;
  bool is_static = true;
};

// Two statements may repeat, but not contradict each other.
void state(const std::optional<Statement>& said, const std::string& file, KvConfig& out) {
  if (!said) return;
  if (!out.statement.empty() && out.stated != said->cache) {
    throw Error(cat(out.statement, ", but ", said->text),
                "one of the two was edited: make them agree");
  }
  if (!out.statement.empty()) return;
  out.statement = said->text;
  out.stated_in = file;
  out.stated = said->cache;
  out.is_static = said->is_static;
  if (out.stated == KvFormat::nvfp4) out.format = KvFormat::nvfp4;
}

// The cache format for an algorithm's name in ModelOpt and TensorRT-LLM.
std::optional<KvFormat> cache_of(const std::string& algorithm) {
  if (algorithm == "FP8") return KvFormat::e4m3fn;
  if (algorithm == "NVFP4") return KvFormat::nvfp4;
  return std::nullopt;
}

// Reads kv_cache_quant_algo of ModelOpt and TensorRT-LLM.
std::optional<Statement> algorithm_of(const Json& block) {
  const auto algorithm = block.find("kv_cache_quant_algo");
  if (!algorithm) return std::nullopt;
  return Statement{cat(algorithm->where(), ": is ", quote(algorithm->as_string())),
                   cache_of(algorithm->as_string()), true};
}

// Whether the tensor has a stored scale. With "local", compressed-tensors stores that scale, and
// blocks get theirs when they are written.
bool has_stored_scale(const Json& scheme) {
  const auto dynamic = scheme.find("dynamic");
  if (!dynamic || (dynamic->is_string() && dynamic->as_string() == "local")) return true;
  return !dynamic->as_bool();
}

// Reads kv_cache_scheme: an object {num_bits, type} as in compressed-tensors, or a name as in
// ModelOpt 0.29 to 0.37. With `nvfp4`, 4-bit floats mean NVFP4 with scales that multiply, as
// ModelOpt and AutoRound write them. llm-compressor's scales divide.
std::optional<Statement> scheme_of(const Json& scheme, bool nvfp4) {
  if (scheme.is_string()) {
    return Statement{cat(scheme.where(), ": is ", quote(scheme.as_string())),
                     cache_of(scheme.as_string()), true};
  }
  const int64_t bits = scheme.at("num_bits").as_int();
  const std::string type = scheme.at("type").as_string();
  const std::string kind = type == "float" ? "floats" : type == "int" ? "integers" : quote(type);
  std::optional<KvFormat> cache;
  if (type == "float" && bits == 8) cache = KvFormat::e4m3fn;
  if (type == "float" && bits == 4 && nvfp4) cache = KvFormat::nvfp4;
  return Statement{cat(scheme.where(), ": is for ", bits, "-bit ", kind), cache,
                   has_stored_scale(scheme)};
}

// The observer of compressed-tensors. A scheme that names none means the default of its version.
std::string observer_of(const Json& scheme, const std::string& version) {
  const std::string named = scheme.get_string("observer", "");
  if (!named.empty() || version.empty()) return named;
  return version_before(version, "0.14") ? "minmax" : "memoryless_minmax";
}

// The scheme for attention inputs. K and V are described there if Q is quantised along with them.
std::optional<Json> attention_group(const Json& block) {
  const auto groups = block.find("config_groups");
  if (!groups) return std::nullopt;
  for (size_t i = 0; i < groups->size(); ++i) {
    const Json group = groups->value(i);
    const auto targets = group.find("targets");
    for (size_t j = 0; targets && j < targets->size(); ++j) {
      const std::string target = (*targets)[j].as_string();
      if (target.find("Attention") == target.npos && target.find("attn") == target.npos) continue;
      if (const auto inputs = group.find("input_activations")) return inputs;
    }
  }
  return std::nullopt;
}

// AutoRound writes in the form of several tools. If the method has another name, the provider or
// the version tells AutoRound, depending on the form.
bool is_by_autoround(const Json& block) {
  const auto provider = block.find("provider");
  return block.get_string("quant_method", "") == "auto-round" || block.find("autoround_version") ||
         (provider && provider->is_string() && provider->as_string() == "auto-round");
}

// AutoRound overwrites FP8's scales after each batch, and takes NVFP4's from the largest values of
// all batches: hence the observers.
void name_autoround(const Json& block, KvConfig& out) {
  out.by_autoround = true;
  out.producer = "AutoRound";
  out.version = block.get_string("autoround_version", "");
  out.observer = out.stated == KvFormat::nvfp4 ? "static_minmax" : "memoryless_minmax";
}

std::optional<KvFormat> autoround_cache(const std::string& name) {
  if (name == "fp8" || name == "float8_e4m3fn") return KvFormat::e4m3fn;
  if (name == "nvfp4" || name == "fp4" || name == "float4_e2m1") return KvFormat::nvfp4;
  return std::nullopt;
}

// For all forms except compressed-tensors. If attention is quantised, its cache is too.
void read_autoround(const QuantConfig& quant, KvConfig& out) {
  const Json& block = *quant.block;
  if (!is_by_autoround(block)) return;
  for (const char* const key : {"static_kv_dtype", "static_attention_dtype"}) {
    const auto dtype = block.find(key);
    if (!dtype || !dtype->is_string()) continue;
    const std::string name = dtype->as_string();
    out.method = quant.method;
    state(Statement{cat(dtype->where(), ": is ", quote(name)), autoround_cache(name), true},
          quant.file, out);
    return name_autoround(block, out);
  }
}

void read_compressed_tensors(const QuantConfig& quant, KvConfig& out) {
  const Json& block = *quant.block;
  auto scheme = block.find("kv_cache_scheme");
  if (!scheme) scheme = attention_group(block);
  if (!scheme) return;
  out.method = QuantMethod::compressed_tensors;
  out.producer = "compressed-tensors";
  out.version = block.get_string("version", "");
  out.before_0_7 = quant.key == kOldQuantBlock || version_before(out.version, "0.7");
  state(scheme_of(*scheme, is_by_autoround(block)), quant.file, out);
  out.observer = observer_of(*scheme, out.version);
  if (is_by_autoround(block)) name_autoround(block, out);
}

void read_producer(const Json& block, KvConfig& out) {
  const auto producer = block.find("producer");
  if (!producer) return;
  if (out.producer.empty()) out.producer = producer->get_string("name", "");
  if (out.version.empty()) out.version = producer->get_string("version", "");
}

// ModelOpt's members are in an object `quantization` in its own file, but directly in the block of
// config.json.
Json modelopt_members(const Json& block) {
  return block.find("quantization").value_or(block);
}

void read_modelopt(const QuantConfig& quant, KvConfig& out) {
  read_modelopt_json(*quant.block, quant.file, out);
}

bool exports_kv_cache(const Json& block) {
  const auto exported = block.find("export");
  const auto group = exported ? exported->find("kv_cache_group") : std::nullopt;
  return group && group->size() > 0;
}

void read_quark(const QuantConfig& quant, KvConfig& out) {
  const Json& block = *quant.block;
  if (!exports_kv_cache(block)) return;
  out.method = quant.method;
  out.by_quark = true;
  out.producer = "Quark";
  out.post_rope = block.get_bool("kv_cache_post_rope", false);
  out.floor = block.at("export").get_double("min_kv_scale", 0);
}

void read_fp8(const QuantConfig& quant, KvConfig& out) {
  read_quark(quant, out);
  read_autoround(quant, out);
  const auto scheme = quant.block->find("kv_cache_scheme");
  if (out.by_quark || out.by_autoround || !scheme || !scheme->is_string() ||
      scheme->as_string() != "static")
    return;
  out.method = QuantMethod::fp8;
  out.producer = "AutoFP8";
  state(Statement{cat(scheme->where(), ": is 'static'"), KvFormat::e4m3fn, true}, quant.file, out);
}

bool is_empty(const std::optional<Json>& value) {
  return !value || value->size() == 0;
}

bool ignores_all(const std::optional<Json>& list, std::span<const std::string> modules) {
  if (is_empty(list)) return false;
  std::vector<std::string> entries;
  for (size_t i = 0; i < list->size(); ++i) entries.push_back((*list)[i].as_string());
  return std::all_of(modules.begin(), modules.end(), [&](const std::string& module) {
    return ignored(entries, module) == Ignored::yes;
  });
}

std::string is_quantised(const QuantConfig& quant, std::span<const std::string>) {
  return cat(quant.block->where(), ": the weights are quantised (quant_method ",
             quote(quant.quant_method), ")");
}

std::string by_groups(const QuantConfig& quant, std::span<const std::string> modules) {
  const auto groups = quant.block->find("config_groups");
  if (is_empty(groups) || ignores_all(quant.block->find("ignore"), modules)) return "";
  for (size_t i = 0; i < groups->size(); ++i) {
    const Json group = groups->value(i);
    for (const char* part : {"weights", "input_activations", "output_activations"}) {
      if (group.find(part)) return cat(group.where(), ": quantises ", part);
    }
  }
  return "";
}

// If all layers are ignored, the block exists for the cache alone: inject writes such a block for
// vLLM on MI300.
std::string unless_all_ignored(const QuantConfig& quant, std::span<const std::string> modules) {
  if (ignores_all(quant.block->find("ignored_layers"), modules)) return "";
  return is_quantised(quant, modules);
}

// Whether ModelOpt's config leaves out all modules with "*".
bool leaves_all(const Json& json) {
  const Json members = modelopt_members(json);
  for (const char* key : {"ignore", "exclude_modules"}) {
    const auto list = members.find(key);
    for (size_t i = 0; list && list->is_array() && i < list->size(); ++i) {
      if ((*list)[i].is_string() && (*list)[i].as_string() == "*") return true;
    }
  }
  return false;
}

std::string by_algorithm(const QuantConfig& quant, std::span<const std::string>) {
  for (const auto& json : {quant.block, quant.hf_quant}) {
    if (!json || leaves_all(*json)) continue;
    if (modelopt_members(*json).find("quant_algo") || !is_empty(json->find("config_groups"))) {
      return cat(json->where(), ": quantises the weights with modelopt");
    }
  }
  return "";
}

// Up to 0.37 ModelOpt wrote no quant_method. vLLM goes by the producer's name then, and so does
// this function.
bool is_modelopt(const QuantConfig& quant) {
  if (quant.quant_method.starts_with("modelopt")) return true;
  const auto producer = quant.block->find("producer");
  return producer && producer->is_object() && producer->get_string("name", "") == "modelopt";
}

// The first row that fits counts. compressed-tensors sometimes left out its name under its older
// key.
constexpr MethodRow kRows[] = {
    {QuantMethod::compressed_tensors,
     [](const QuantConfig& quant) {
       return quant.quant_method == "compressed-tensors" ||
              (quant.quant_method.empty() && quant.key == kOldQuantBlock);
     },
     read_compressed_tensors, by_groups},
    {QuantMethod::modelopt, is_modelopt, read_modelopt, by_algorithm},
    {QuantMethod::quark, [](const QuantConfig& quant) { return quant.quant_method == "quark"; },
     read_quark, is_quantised},
    {QuantMethod::fp8, [](const QuantConfig& quant) { return quant.quant_method == "fp8"; },
     read_fp8, unless_all_ignored},
    {QuantMethod::other, [](const QuantConfig&) { return true; }, read_autoround, is_quantised},
};

}  // namespace

const MethodRow& row_of(QuantMethod method) {
  const MethodRow* row = std::find_if(std::begin(kRows), std::end(kRows),
                                      [&](const MethodRow& each) { return each.method == method; });
  FP8KV_ASSERT(row != std::end(kRows));
  return *row;
}

QuantMethod method_of(const QuantConfig& quant) {
  return std::find_if(std::begin(kRows), std::end(kRows),
                      [&](const MethodRow& row) { return row.is_of(quant); })
      ->method;
}

void read_modelopt_json(const Json& block, const std::string& file, KvConfig& out) {
  std::optional<Statement> said = algorithm_of(modelopt_members(block));
  if (const auto scheme = block.find("kv_cache_scheme"); !said && scheme)
    said = scheme_of(*scheme, true);
  if (!said) return;  // only the weights are quantised, not the cache
  out.method = QuantMethod::modelopt;
  read_producer(block, out);
  state(said, file, out);
}

KvConfig read_trtllm_config(const Json& config) {
  KvConfig out;
  out.method = QuantMethod::trtllm;
  out.key = "quantization";
  read_producer(config, out);
  const auto block = config.find("quantization");
  if (!block) return out;
  std::optional<Statement> said = algorithm_of(*block);
  // No such checkpoint is known, so the meaning of its NVFP4 scales is unknown too.
  if (said && said->cache == KvFormat::nvfp4) said->cache.reset();
  state(said, config.where(), out);
  return out;
}

}  // namespace fp8kv
