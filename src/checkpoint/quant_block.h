// What a checkpoint's configs say of quantisation, as far as KV scales depend on it, and what they
// must say for a runtime to use scales. Reads and makes text; writes no file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "json/json.h"

namespace fp8kv {

inline constexpr const char* kModelOptFile = "hf_quant_config.json";

// Whose form a config has. `fp8` is that of AutoFP8, Quark's "fp8" mode and DeepSeek.
enum class QuantMethod { none, compressed_tensors, fp8, modelopt, quark, other };

struct QuantBlock {
  QuantMethod method = QuantMethod::none;
  std::string name;              // its quant_method: "compressed-tensors"; "" for none
  std::string key;               // of config.json; "" where hf_quant_config.json alone says it
  std::optional<Json> json;      // the object at that key
  std::optional<Json> modelopt;  // all of hf_quant_config.json, where that is there
  // It quantises no weights, and so is there for the KV cache alone.
  bool cache_only = false;
};

// hf_quant_config.json of a folder that has it.
std::optional<Json> read_modelopt_file(const Checkpoint& checkpoint);

// Of the configs and tensors of one model. Throws for a block that is no object.
QuantBlock read_quant_block(const Json& config, const std::optional<Json>& modelopt,
                            const TensorMap& tensors);

// quantization_config for a model whose weights are not quantised, as JSON. The first is a block of
// compressed-tensors for the cache alone, the second one of fp8 that leaves out every linear layer.
std::string compressed_tensors_block(const TensorMap& tensors, bool per_head);
std::string fp8_block(const TensorMap& tensors);

// The members of `block` that say "the cache is FP8, with scales", added in its own form. By file
// name, and only files that change. REQUIRES the method compressed_tensors, fp8 or modelopt.
// Throws when it says already that the cache is something else.
std::map<std::string, std::string> with_cache_scales(const Checkpoint& checkpoint,
                                                     const QuantBlock& block, bool per_head);

// A JSON text as it looks one level deeper in a document.
std::string indented(std::string_view json);

}  // namespace fp8kv
