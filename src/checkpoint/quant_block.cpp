#include "checkpoint/quant_block.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "checkpoint/linear_modules.h"
#include "files/file.h"

namespace fp8kv {
namespace {

constexpr std::array<const char*, 2> kKeys = {"quantization_config", "compression_config"};

constexpr std::array<std::pair<std::string_view, QuantMethod>, 6> kMethods = {{
    {"compressed-tensors", QuantMethod::compressed_tensors},
    {"fp8", QuantMethod::fp8},
    {"modelopt", QuantMethod::modelopt},
    {"modelopt_fp4", QuantMethod::modelopt},
    {"modelopt_mixed", QuantMethod::modelopt},
    {"quark", QuantMethod::quark},
}};

QuantMethod method_of(std::string_view name) {
  for (const auto& [known, method] : kMethods) {
    if (known == name) return method;
  }
  return QuantMethod::other;
}

bool has_fp8_weights(const TensorMap& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return fp8_format(tensor.second.entry.dtype).has_value();
  });
}

bool is_empty(const std::optional<Json>& value) {
  return !value || value->size() == 0;
}

bool quantises_no_weights(const TensorMap& tensors, const QuantBlock& block) {
  switch (block.method) {
    case QuantMethod::compressed_tensors:
      return is_empty(block.json->find("config_groups"));
    case QuantMethod::fp8:
      return !has_fp8_weights(tensors) && !is_empty(block.json->find("ignored_layers"));
    default:
      return false;
  }
}

void write_cache_scheme(JsonWriter& out, bool per_head) {
  out.begin_object().member("num_bits", 8).member("type", "float");
  out.member("strategy", per_head ? "attn_head" : "tensor");
  out.member("dynamic", false).member("symmetric", true).end_object();
}

// Throws unless a kv_cache_scheme object is of FP8, whatever else it says.
void check_fp8_scheme(const Json& scheme) {
  if (scheme.get_string("type", "") == "float" && scheme.get_int("num_bits", 0) == 8) return;
  throw Error(cat(scheme.where(), ": is ", scheme.brief(), ", expected a cache of 8-bit floats"),
              "these scales are for FP8; inject into the model this one was made from");
}

// `object` with `key` set, and everything else in its order, one level deeper in its document.
template <typename Write>
std::string with_member(const Json& object, const std::string& key, Write&& write) {
  JsonWriter out;
  out.begin_object();
  bool written = false;
  for (size_t i = 0; i < object.size(); ++i) {
    out.key(object.key(i));
    const bool here = object.key(i) == key;
    here ? write(out) : static_cast<void>(out.value(object.value(i)));
    written = written || here;
  }
  if (!written) {
    out.key(key);
    write(out);
  }
  return indented(out.end_object().text());
}

std::string extended_block(const QuantBlock& block, bool per_head) {
  const auto scheme = block.json->find("kv_cache_scheme");
  if (scheme && scheme->is_object()) check_fp8_scheme(*scheme);
  return with_member(*block.json, "kv_cache_scheme", [&](JsonWriter& out) {
    switch (block.method) {
      case QuantMethod::compressed_tensors:
        return write_cache_scheme(out, per_head);
      case QuantMethod::fp8:
        out.value("static");
        return;
      default:
        out.begin_object().member("dynamic", false).member("num_bits", 8);
        out.member("type", "float").end_object();
    }
  });
}

std::string extended_modelopt_file(const Checkpoint& checkpoint, const Json& document) {
  const Json quantization = document.at("quantization");
  const std::string algorithm = quantization.get_string("kv_cache_quant_algo", "FP8");
  if (algorithm != "FP8") {
    throw Error(cat(quantization.where(), ".kv_cache_quant_algo: is ", quote(algorithm),
                    ", expected 'FP8'"),
                "these scales are for FP8; inject into the model this one was made from");
  }
  const std::string extended =
      with_member(quantization, "kv_cache_quant_algo", [](JsonWriter& out) { out.value("FP8"); });
  return json_with_member(read_text(checkpoint.folder() / kModelOptFile), "quantization", extended);
}

}  // namespace

std::optional<Json> read_modelopt_file(const Checkpoint& checkpoint) {
  const std::filesystem::path path = checkpoint.folder() / kModelOptFile;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return Json::read(path);
}

QuantBlock read_quant_block(const Json& config, const std::optional<Json>& modelopt,
                            const TensorMap& tensors) {
  QuantBlock block;
  for (const char* key : kKeys) {
    const auto json = config.find(key);
    if (!json) continue;
    if (!json->is_object()) fail(json->where(), ": is ", json->brief(), ", expected an object");
    block.key = key;
    block.json = *json;
    block.name = json->get_string("quant_method", "");
    // The older key is compressed-tensors' alone, which did not always name itself there.
    const bool nameless = block.name.empty() && block.key == kKeys[1];
    block.method = nameless ? QuantMethod::compressed_tensors : method_of(block.name);
    break;
  }
  if (const auto text = config.find("text_config"); text && !block.json) {
    if (const auto json = text->find(kKeys[0])) {
      block = {QuantMethod::other,
               json->get_string("quant_method", ""),
               "text_config",
               *json,
               {},
               false};
    }
  }
  if (modelopt && (!block.json || block.method == QuantMethod::modelopt)) {
    block.modelopt = modelopt;
    block.method = QuantMethod::modelopt;
    if (block.name.empty()) block.name = "modelopt";
  }
  block.cache_only = quantises_no_weights(tensors, block);
  return block;
}

std::string compressed_tensors_block(const TensorMap& tensors, bool per_head) {
  const std::vector<std::string> ignore =
      ignore_patterns(linear_modules(tensors), has_experts(tensors));
  JsonWriter out;
  out.begin_object().member("quant_method", "compressed-tensors").member("format", "dense");
  out.member("quantization_status", "frozen").key("config_groups").begin_object().end_object();
  out.member("ignore", std::span<const std::string>(ignore)).key("kv_cache_scheme");
  write_cache_scheme(out, per_head);
  return indented(out.end_object().text());
}

std::string fp8_block(const TensorMap& tensors) {
  std::vector<std::string> modules = linear_modules(tensors);
  // There too where it is tied to the embedding and has no tensor of its own.
  if (!tensors.contains("lm_head.weight")) modules.insert(modules.begin(), "lm_head");
  JsonWriter out;
  out.begin_object().member("quant_method", "fp8").member("activation_scheme", "dynamic");
  out.member("ignored_layers", std::span<const std::string>(modules));
  return indented(out.end_object().text());
}

std::map<std::string, std::string> with_cache_scales(const Checkpoint& checkpoint,
                                                     const QuantBlock& block, bool per_head) {
  FP8KV_ASSERT(block.method == QuantMethod::compressed_tensors ||
               block.method == QuantMethod::fp8 || block.method == QuantMethod::modelopt);
  std::map<std::string, std::string> files;
  if (block.json) {
    files["config.json"] = json_with_member(read_text(checkpoint.config_path()), block.key,
                                            extended_block(block, per_head));
  }
  if (block.modelopt) files[kModelOptFile] = extended_modelopt_file(checkpoint, *block.modelopt);
  return files;
}

std::string indented(std::string_view json) {
  while (json.ends_with('\n')) json.remove_suffix(1);
  std::string out;
  for (const char c : json) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out;
}

}  // namespace fp8kv
