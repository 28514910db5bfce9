#include "checkpoint/kv_config.h"

#include <charconv>
#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr uint64_t kLargestConfig = uint64_t(16) << 20;

std::vector<int> version_parts(const std::string& version) {
  std::vector<int> parts;
  const char* at = version.data();
  const char* end = at + version.size();
  while (at < end) {
    int part = 0;
    const auto parsed = std::from_chars(at, end, part);
    if (parsed.ec != std::errc() || part < 0) break;
    parts.push_back(part);
    if (parsed.ptr == end || *parsed.ptr != '.') break;
    at = parsed.ptr + 1;
  }
  return parts;
}

// One place where a config says which type the cache has.
struct Statement {
  std::string text;
  bool is_fp8 = false;
  bool is_static = true;
};

// Two statements may repeat, but not contradict each other.
void state(const std::optional<Statement>& said, const std::string& file, KvConfig& out) {
  if (!said) return;
  if (!out.statement.empty() && out.is_fp8 != said->is_fp8) {
    throw Error(cat(out.statement, ", but ", said->text),
                "one of the two was edited: make them agree");
  }
  if (!out.statement.empty()) return;
  out.statement = said->text;
  out.stated_in = file;
  out.is_fp8 = said->is_fp8;
  out.is_static = said->is_static;
}

// "'m/config.json'" of any value in it.
std::string file_of(const Json& document) {
  const std::string where = document.where();
  return where.substr(0, where.find("': ") == where.npos ? where.npos : where.find("': ") + 1);
}

// kv_cache_quant_algo, of ModelOpt and TensorRT-LLM.
std::optional<Statement> algorithm_of(const Json& block) {
  const auto algorithm = block.find("kv_cache_quant_algo");
  if (!algorithm) return std::nullopt;
  return Statement{cat(algorithm->where(), ": is ", quote(algorithm->as_string())),
                   algorithm->as_string() == "FP8", true};
}

// kv_cache_scheme: an object {num_bits, type} in compressed-tensors' manner, or a name as
// ModelOpt 0.29 to 0.37 has it.
std::optional<Statement> scheme_of(const Json& scheme) {
  if (scheme.is_string()) {
    return Statement{cat(scheme.where(), ": is ", quote(scheme.as_string())),
                     scheme.as_string() == "FP8", true};
  }
  const int64_t bits = scheme.at("num_bits").as_int();
  const std::string type = scheme.at("type").as_string();
  const std::string kind = type == "float" ? "floats" : type == "int" ? "integers" : quote(type);
  return Statement{cat(scheme.where(), ": is for ", bits, "-bit ", kind),
                   bits == 8 && type == "float", !scheme.get_bool("dynamic", false)};
}

// What compressed-tensors measured when a scheme names no observer: the default of its version.
std::string observer_of(const Json& scheme, const std::string& version) {
  const std::string named = scheme.get_string("observer", "");
  if (!named.empty() || version.empty()) return named;
  return version_before(version, "0.14") ? "minmax" : "memoryless_minmax";
}

// The scheme for attention inputs, which is how K and V are named when Q is quantised with them.
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

void read_compressed_tensors(const Json& block, bool old, KvConfig& out) {
  auto scheme = block.find("kv_cache_scheme");
  if (!scheme) scheme = attention_group(block);
  if (!scheme) return;
  out.version = block.get_string("version", "");
  const bool by_version = !out.version.empty() && version_before(out.version, "0.7");
  out.method = old || by_version ? KvMethod::compressed_tensors_old : KvMethod::compressed_tensors;
  out.producer = "compressed-tensors";
  state(scheme_of(*scheme), file_of(block), out);
  out.observer = observer_of(*scheme, out.version);
}

void read_producer(const Json& block, KvConfig& out) {
  const auto producer = block.find("producer");
  if (!producer) return;
  if (out.producer.empty()) out.producer = producer->get_string("name", "");
  if (out.version.empty()) out.version = producer->get_string("version", "");
}

void read_modelopt(const Json& block, KvConfig& out) {
  const Json algorithms = block.find("quantization").value_or(block);
  std::optional<Statement> said = algorithm_of(algorithms);
  if (const auto scheme = block.find("kv_cache_scheme"); !said && scheme) said = scheme_of(*scheme);
  if (!said) return;  // the weights are quantised, the cache is not
  out.method = KvMethod::modelopt;
  read_producer(block, out);
  state(said, file_of(block), out);
}

void read_quark(const Json& block, KvMethod method, KvConfig& out) {
  out.method = method;
  out.producer = "Quark";
  out.post_rope = block.get_bool("kv_cache_post_rope", false);
  if (const auto exported = block.find("export")) {
    out.floor = exported->get_double("min_kv_scale", 0);
  }
}

bool exports_kv_cache(const Json& block) {
  const auto exported = block.find("export");
  const auto group = exported ? exported->find("kv_cache_group") : std::nullopt;
  return group && group->size() > 0;
}

bool is_modelopt(const Json& block) {
  if (block.get_string("quant_method", "").starts_with("modelopt")) return true;
  const auto producer = block.find("producer");  // up to 0.37 there is no quant_method
  return producer && producer->get_string("name", "") == "modelopt";
}

void read_block(const Json& block, bool old, KvConfig& out) {
  if (!block.is_object()) {
    fail(block.where(), ": is ", block.brief(), ", expected an object");
  }
  out.quant_method = block.get_string("quant_method", "");
  if (out.quant_method == "compressed-tensors") {
    read_compressed_tensors(block, old, out);
  } else if (is_modelopt(block)) {
    read_modelopt(block, out);
  } else if (out.quant_method == "quark") {
    if (exports_kv_cache(block)) read_quark(block, KvMethod::quark, out);
  } else if (out.quant_method == "fp8" && exports_kv_cache(block)) {
    read_quark(block, KvMethod::quark_fp8, out);
  } else if (out.quant_method == "fp8") {
    const auto scheme = block.find("kv_cache_scheme");
    if (!scheme || !scheme->is_string() || scheme->as_string() != "static") return;
    out.method = KvMethod::fp8;
    out.producer = "AutoFP8";
    state(Statement{cat(scheme->where(), ": is 'static'"), true, true}, file_of(block), out);
  }
}

void read_torch_dtype(const Json& config, KvConfig& out) {
  const auto named = config.find("kv_cache_torch_dtype");
  if (!named) {
    out.tgi_script = config.get_string("kv_cache_dtype", "").starts_with("float8_e4m3");
    return;
  }
  out.torch_dtype = named->as_string();
  if (out.torch_dtype == "float8_e4m3fn") return;
  out.format = Fp8Format::e4m3fnuz;
  if (out.torch_dtype == "float8_e4m3fnuz") return;
  fail(named->where(), ": is ", quote(out.torch_dtype),
       ", expected 'float8_e4m3fn' or 'float8_e4m3fnuz'");
}

}  // namespace

KvConfig read_kv_config(const Json& config, const std::optional<Json>& hf_quant) {
  KvConfig out;
  read_torch_dtype(config, out);
  if (hf_quant) read_modelopt(*hf_quant, out);
  const bool from_file = out.method == KvMethod::modelopt;
  for (const char* key : {"quantization_config", "compression_config"}) {
    const auto block = config.find(key);
    if (!block) continue;
    out.block = key;
    read_block(*block, key == std::string_view("compression_config"), out);
    break;
  }
  if (from_file && out.method != KvMethod::modelopt) {
    throw Error(cat(hf_quant->where(), ": is ModelOpt's, but ", config.where(), ": ", out.block,
                    ": has scales for the KV cache by quant_method ", quote(out.quant_method)),
                "the two are of different checkpoints: remove the one that is not this one's");
  }
  return out;
}

KvConfig read_trtllm_config(const Json& config) {
  KvConfig out;
  out.method = KvMethod::trtllm;
  out.block = "quantization";
  read_producer(config, out);
  const auto block = config.find("quantization");
  if (block) state(algorithm_of(*block), file_of(config), out);
  return out;
}

std::optional<Json> find_hf_quant(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "hf_quant_config.json";
  if (!std::filesystem::exists(path)) return std::nullopt;
  return Json::read(path, kLargestConfig);
}

bool version_before(const std::string& version, const std::string& bound) {
  const std::vector<int> parts = version_parts(version);
  return !parts.empty() && parts < version_parts(bound);
}

}  // namespace fp8kv
