// Reads the JSON files beside the weights for quantisation: which tool's form they have, whether
// weights are quantised, and the type of the KV cache. One table holds the forms. Reads no tensors
// and writes no files.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"
#include "core/cache/kv_format.h"
#include "json/json.h"

namespace fp8kv {

inline constexpr const char* kModelOptFile = "hf_quant_config.json";

// The tool whose form a config has. `fp8` is the form of AutoFP8, of Quark's "fp8" mode and of
// DeepSeek. `trtllm` and `ammo` are not Hugging Face folders, so no QuantConfig has these methods.
enum class QuantMethod { none, compressed_tensors, fp8, modelopt, quark, trtllm, ammo, other };

struct QuantConfig {
  QuantMethod method = QuantMethod::none;
  std::string file;              // "'m/config.json'", for messages
  std::string quant_method;      // as the config spells it; "" if it has none
  std::string key;               // the place in config.json: "quantization_config"; or ""
  std::optional<Json> block;     // the object at that key
  std::optional<Json> hf_quant;  // all of hf_quant_config.json

  // The name for messages: quant_method, or the method's usual name if the config has none.
  std::string name() const;
};

// Reads the hf_quant_config.json of a folder; nullopt if there is none.
std::optional<Json> read_hf_quant(const std::filesystem::path& folder);

// Throws if the block is not an object.
QuantConfig read_quant_config(const Json& config, const std::optional<Json>& hf_quant);
QuantConfig read_quant_config(const Checkpoint& checkpoint);

// The place that makes weights quantised: "'m/config.json': quantization_config: quantises the
// weights with modelopt". "" if all weights are plain. `modules` are the linear layers.
std::string quantised_weights(const QuantConfig& quant, std::span<const std::string> modules);

struct KvConfig {
  QuantMethod method = QuantMethod::none;  // `none` if the config does not mention a KV cache
  bool before_0_7 = false;                 // compressed-tensors, by version or `compression_config`
  bool by_quark = false;                   // Quark's `export` describes the cache
  bool by_autoround = false;
  std::string quant_method;  // as in QuantConfig, even if it does not concern the KV cache
  std::string key;           // in config.json, as in QuantConfig; or ""
  std::string producer;      // "modelopt", "Quark", ...; "" if the config does not say
  std::string version;       // of the producer; "" if the config does not say
  // The member that gives the type of the cache: "'m/config.json': a.b: is 'FP8'", and the file's
  // name in quotes. "" if the config has none.
  std::string statement;
  std::string stated_in;
  // The type given there: e4m3fn for FP8, nvfp4, or nullopt for any other.
  std::optional<KvFormat> stated = {};
  bool is_static = true;   // false if scales are made at run time and not stored
  std::string observer;    // the statistic behind the scales in compressed-tensors' words, or ""
  bool post_rope = false;  // Quark's kv_cache_post_rope
  double floor = 0;        // Quark raised smaller scales to this; 0: no floor
  // The format of the scales: nvfp4 if the config states it, else kv_cache_torch_dtype, else
  // e4m3fn.
  KvFormat format = KvFormat::e4m3fn;
  std::string torch_dtype;  // the text of that key, or ""
  bool tgi_script = false;  // has the key that only the script of TGI's branch wrote
};

// Reads a Hugging Face folder: config.json and, if it exists, hf_quant_config.json. Throws if the
// two disagree over the type of the cache, or if kv_cache_torch_dtype is not E4M3.
KvConfig read_kv_config(const Json& config, const std::optional<Json>& hf_quant);

// Reads the config.json of a TensorRT-LLM checkpoint.
KvConfig read_trtllm_config(const Json& config);

// Compares versions as numbers: "0.27.1" is before "0.43". False if `version` is not a version.
// REQUIRES `bound` to be one.
bool version_before(const std::string& version, const std::string& bound);

}  // namespace fp8kv
