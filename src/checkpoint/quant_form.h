// Values that the JSON files beside the weights have about quantisation.
#pragma once

#include <optional>
#include <string>

#include "core/cache/kv_format.h"
#include "json/json.h"

namespace fp8kv {

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

}  // namespace fp8kv
