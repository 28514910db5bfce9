#include "scales/write/quant_block.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
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

std::string extended_block(const QuantConfig& quant, bool per_head) {
  const auto scheme = quant.block->find("kv_cache_scheme");
  if (scheme && scheme->is_object()) check_fp8_scheme(*scheme);
  return with_member(*quant.block, "kv_cache_scheme", [&](JsonWriter& out) {
    switch (quant.method) {
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
  // There too where it is tied to the embedding and has no tensor of its own.
  if (!tensors.contains("lm_head.weight")) modules.insert(modules.begin(), "lm_head");
  JsonWriter out;
  out.begin_object().member("quant_method", "fp8").member("activation_scheme", "dynamic");
  out.member("ignored_layers", std::span<const std::string>(modules));
  return indented(out.end_object().text());
}

std::map<std::string, std::string> with_cache_scales(const Checkpoint& checkpoint,
                                                     const QuantConfig& quant, bool per_head) {
  const bool modelopt = quant.method == QuantMethod::modelopt;
  FP8KV_ASSERT(modelopt || quant.method == QuantMethod::compressed_tensors ||
               quant.method == QuantMethod::fp8);
  std::map<std::string, std::string> files;
  if (quant.block) {
    files["config.json"] = json_with_member(read_regular_text(checkpoint.config_path()), quant.key,
                                            extended_block(quant, per_head));
  }
  if (modelopt && quant.hf_quant) {
    files[kModelOptFile] = extended_modelopt_file(checkpoint, *quant.hf_quant);
  }
  return files;
}

bool is_for_cache_alone(const QuantConfig& quant, const TensorMap& tensors) {
  if (quant.method != QuantMethod::compressed_tensors && quant.method != QuantMethod::fp8) {
    return false;
  }
  // A block with groups is kept, whatever they say: those written here have none.
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
