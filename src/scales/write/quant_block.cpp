#include "scales/write/quant_block.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
#include "checkpoint/hf_quant.h"
#include "checkpoint/linear_modules.h"
#include "files/file.h"

namespace fp8kv {
namespace {

bool has_fp8_weights(const TensorMap& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return fp8_format(tensor.second.entry.dtype).has_value();
  });
}

void write_cache_scheme(JsonWriter& out, bool per_head) {
  out.begin_object().member("num_bits", 8).member("type", "float");
  out.member("strategy", per_head ? "attn_head" : "tensor");
  out.member("dynamic", false).member("symmetric", true).end_object();
}

int bits_of(CacheScheme scheme) {
  return scheme == CacheScheme::nvfp4 ? 4 : 8;
}

// The value of kv_cache_quant_algo.
const char* algorithm_of(CacheScheme scheme) {
  return scheme == CacheScheme::nvfp4 ? "NVFP4" : "FP8";
}

std::string way_out(CacheScheme scheme) {
  return cat("these scales are for ", algorithm_of(scheme),
             "; inject into the model this one was made from");
}

// Throws unless a kv_cache_scheme object has this type. Ignores its other members.
void check_scheme(const Json& found, CacheScheme expected) {
  const int bits = bits_of(expected);
  if (found.get_string("type", "") == "float" && found.get_int("num_bits", 0) == bits) return;
  throw Error(
      cat(found.where(), ": is ", found.brief(), ", expected a cache of ", bits, "-bit floats"),
      way_out(expected));
}

void write_modelopt_scheme(JsonWriter& out, CacheScheme scheme) {
  out.begin_object().member("dynamic", false).member("num_bits", bits_of(scheme));
  out.member("type", "float").end_object();
}

// Returns `object` with `key` set and all other members in their order, indented one level deeper.
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

std::string extended_block(const QuantConfig& quant, CacheScheme scheme) {
  const auto found = quant.block->find("kv_cache_scheme");
  if (found && found->is_object()) check_scheme(*found, scheme);
  return with_member(*quant.block, "kv_cache_scheme", [&](JsonWriter& out) {
    switch (quant.method) {
      case QuantMethod::compressed_tensors:
        return write_cache_scheme(out, scheme == CacheScheme::fp8_per_head);
      case QuantMethod::fp8:
        out.value("static");
        return;
      default:
        write_modelopt_scheme(out, scheme);
    }
  });
}

std::string extended_modelopt_file(const Checkpoint& checkpoint, const Json& document,
                                   CacheScheme scheme) {
  const Json quantization = document.at("quantization");
  const std::string wanted = algorithm_of(scheme);
  const std::string algorithm = quantization.get_string("kv_cache_quant_algo", wanted);
  if (algorithm != wanted) {
    throw Error(cat(quantization.where(), ".kv_cache_quant_algo: is ", quote(algorithm),
                    ", expected ", quote(wanted)),
                way_out(scheme));
  }
  const std::string extended =
      with_member(quantization, "kv_cache_quant_algo", [&](JsonWriter& out) { out.value(wanted); });
  return json_with_member(read_regular_text(checkpoint.folder() / kModelOptFile), "quantization",
                          extended);
}

}  // namespace

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
  // lm_head also counts if it is tied to the embedding and has no tensor of its own.
  if (!tensors.contains("lm_head.weight")) modules.insert(modules.begin(), "lm_head");
  JsonWriter out;
  out.begin_object().member("quant_method", "fp8").member("activation_scheme", "dynamic");
  out.member("ignored_layers", std::span<const std::string>(modules));
  return indented(out.end_object().text());
}

std::string modelopt_nvfp4_block() {
  const std::vector<std::string> all = {"*"};
  JsonWriter out;
  out.begin_object().member("quant_method", "modelopt").member("quant_algo", "FP8");
  out.member("ignore", std::span<const std::string>(all)).key("kv_cache_scheme");
  write_modelopt_scheme(out, CacheScheme::nvfp4);
  return indented(out.end_object().text());
}

std::map<std::string, std::string> with_cache_scales(const Checkpoint& checkpoint,
                                                     const QuantConfig& quant, CacheScheme scheme) {
  const bool modelopt = quant.method == QuantMethod::modelopt;
  FP8KV_ASSERT(modelopt || quant.method == QuantMethod::compressed_tensors ||
               quant.method == QuantMethod::fp8);
  std::map<std::string, std::string> files;
  if (quant.block) {
    files["config.json"] = json_with_member(read_regular_text(checkpoint.config_path()), quant.key,
                                            extended_block(quant, scheme));
  }
  if (modelopt && quant.hf_quant) {
    files[kModelOptFile] = extended_modelopt_file(checkpoint, *quant.hf_quant, scheme);
  }
  return files;
}

bool is_for_cache_alone(const QuantConfig& quant, const TensorMap& tensors) {
  const bool written_here = quant.method == QuantMethod::compressed_tensors ||
                            quant.method == QuantMethod::fp8 ||
                            (quant.method == QuantMethod::modelopt && !quant.hf_quant);
  if (!written_here) return false;
  // Keeps any block with groups: those that fp8kv writes have none.
  if (const auto groups = quant.block->find("config_groups"); groups && groups->size() > 0) {
    return false;
  }
  return !has_fp8_weights(tensors) && quantised_weights(quant, linear_modules(tensors)).empty();
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
