// What the JSON files beside the weights say of an FP8 KV cache: which tool, which version, what
// its scales mean. Says nothing of the scales themselves.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/fp8.h"
#include "json/json.h"

namespace fp8kv {

// The form that a config announces.
enum class KvMethod {
  none,                    // no word of scales for a KV cache
  fp8,                     // quant_method 'fp8' with kv_cache_scheme 'static'
  quark_fp8,               // the same with Quark's `export`
  compressed_tensors,      // under `quantization_config`
  compressed_tensors_old,  // under `compression_config`, or of a version before 0.7
  modelopt,
  quark,
  trtllm,
  ammo,
};

struct KvConfig {
  KvMethod method = KvMethod::none;
  std::string quant_method;  // as the config spells it, whether about the KV cache or not; or ""
  std::string block;         // the key it stands under: "quantization_config"; or ""
  std::string producer;      // "modelopt", "Quark", ...; "" where the config does not say
  std::string version;       // of the producer; "" where the config does not say
  // Where the config says which type the cache has: "'m/config.json': a.b: is 'FP8'", and the
  // file's name in quotes. "" when it does not.
  std::string statement;
  std::string stated_in;
  bool is_fp8 = false;     // REQUIRES a statement
  bool is_static = true;   // false where scales are made at run time, and so none are stored
  std::string observer;    // compressed-tensors: which statistic was scaled; or ""
  bool post_rope = false;  // Quark's kv_cache_post_rope
  double floor = 0;        // Quark raised smaller scales to this; 0 for none
  // kv_cache_torch_dtype; e4m3fn where it is absent.
  Fp8Format format = Fp8Format::e4m3fn;
  std::string torch_dtype;  // as it stands there, or ""
  bool tgi_script = false;  // has the key that only the script of TGI's branch wrote
};

// Of a Hugging Face folder: config.json and, where there is one, hf_quant_config.json. Throws when
// the two disagree over the type of the cache, and for a kv_cache_torch_dtype that is no E4M3.
KvConfig read_kv_config(const Json& config, const std::optional<Json>& hf_quant);

// Of a TensorRT-LLM checkpoint's config.json.
KvConfig read_trtllm_config(const Json& config);

// The hf_quant_config.json of a folder.
std::optional<Json> find_hf_quant(const std::filesystem::path& folder);

// Versions as numbers: "0.27.1" is before "0.43". REQUIRES `bound` to be a version; false when
// `version` is none.
bool version_before(const std::string& version, const std::string& bound);

}  // namespace fp8kv
