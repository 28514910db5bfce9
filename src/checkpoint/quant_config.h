// What the JSON files beside the weights say of quantisation: which tool's form they have, whether
// the weights are quantised, and what the KV cache is. One table holds the forms. Reads no tensors
// and writes no file.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"
#include "core/kv_format.h"
#include "json/json.h"

namespace fp8kv {

inline constexpr const char* kModelOptFile = "hf_quant_config.json";

// Whose form a config has. `fp8` is that of AutoFP8, of Quark's "fp8" mode and of DeepSeek.
// `trtllm` and `ammo` are not Hugging Face folders and never the method of a QuantConfig.
enum class QuantMethod { none, compressed_tensors, fp8, modelopt, quark, trtllm, ammo, other };

struct QuantConfig {
  QuantMethod method = QuantMethod::none;
  std::string file;              // "'m/config.json'", for messages
  std::string quant_method;      // as the config spells it; "" where it does not
  std::string key;               // where in config.json: "quantization_config"; or ""
  std::optional<Json> block;     // the object at that key
  std::optional<Json> hf_quant;  // all of hf_quant_config.json

  // For messages: quant_method, or the usual name of the method where the config has none.
  std::string name() const;
};

// The hf_quant_config.json of a folder that has one.
std::optional<Json> read_hf_quant(const std::filesystem::path& folder);

// Throws for a block that is no object.
QuantConfig read_quant_config(const Json& config, const std::optional<Json>& hf_quant);
QuantConfig read_quant_config(const Checkpoint& checkpoint);

// What says that weights are quantised: "'m/config.json': quantization_config: quantises the
// weights with modelopt". "" where all weights are plain numbers. `modules`: the linear layers.
std::string quantised_weights(const QuantConfig& quant, std::span<const std::string> modules);

struct KvConfig {
  QuantMethod method = QuantMethod::none;  // `none` where the config says nothing of a KV cache
  bool before_0_7 = false;  // compressed-tensors: by its version, or under `compression_config`
  bool by_quark = false;    // Quark's `export` describes the cache
  bool by_autoround = false;
  std::string quant_method;  // as in QuantConfig, whether about the KV cache or not
  std::string key;           // in config.json, as in QuantConfig; or ""
  std::string producer;      // "modelopt", "Quark", ...; "" where the config does not say
  std::string version;       // of the producer; "" where the config does not say
  // Where the config says which type the cache has: "'m/config.json': a.b: is 'FP8'", and the
  // file's name in quotes. "" when it does not.
  std::string statement;
  std::string stated_in;
  // That type: e4m3fn for FP8, nvfp4, or nothing for any other.
  std::optional<KvFormat> stated = {};
  bool is_static = true;   // false where scales are made at run time, and so none are stored
  std::string observer;    // which statistic was scaled, as compressed-tensors names it; or ""
  bool post_rope = false;  // Quark's kv_cache_post_rope
  double floor = 0;        // Quark raised smaller scales to this; 0 for none
  // The format of the scales: nvfp4 where that is stated, else kv_cache_torch_dtype; e4m3fn where
  // that is absent.
  KvFormat format = KvFormat::e4m3fn;
  std::string torch_dtype;  // as it stands there, or ""
  bool tgi_script = false;  // has the key that only the script of TGI's branch wrote
};

// Of a Hugging Face folder: config.json and, where there is one, hf_quant_config.json. Throws when
// the two disagree over the type of the cache, and for a kv_cache_torch_dtype that is no E4M3.
KvConfig read_kv_config(const Json& config, const std::optional<Json>& hf_quant);

// Of a TensorRT-LLM checkpoint's config.json.
KvConfig read_trtllm_config(const Json& config);

// Versions as numbers: "0.27.1" is before "0.43". REQUIRES `bound` to be a version; false when
// `version` is none.
bool version_before(const std::string& version, const std::string& bound);

}  // namespace fp8kv
