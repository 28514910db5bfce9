// The forms of configs of quantised checkpoints: one row for each tool's form, and what each says
// of the KV cache and of the weights.
#pragma once

#include <span>
#include <string>

#include "checkpoint/quant_form.h"

namespace fp8kv {

// The block's key in config.json, and its key in compressed-tensors before 0.8.
inline constexpr const char* kQuantBlock = "quantization_config";
inline constexpr const char* kOldQuantBlock = "compression_config";

// One form of config. Its functions REQUIRE a block that `is_of` accepts.
struct MethodRow {
  QuantMethod method;
  bool (*is_of)(const QuantConfig& quant);
  // Reads the description of the KV cache.
  void (*cache)(const QuantConfig& quant, KvConfig& out);
  // Does the work of quantised_weights.
  std::string (*weights)(const QuantConfig& quant, std::span<const std::string> modules);
};

// REQUIRES a method that has a row.
const MethodRow& row_of(QuantMethod method);
// The form of a config that has a block.
QuantMethod method_of(const QuantConfig& quant);

// Reads ModelOpt's own file, or its block in config.json.
void read_modelopt_json(const Json& block, const std::string& file, KvConfig& out);

// Reads the config.json of a TensorRT-LLM checkpoint.
KvConfig read_trtllm_config(const Json& config);

}  // namespace fp8kv
