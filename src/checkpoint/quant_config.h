// Interprets the JSON files beside the weights for quantisation: which tool's form they have,
// whether weights are quantised, and the type of the KV cache. One table holds the forms. Opens no
// files.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/quant_form.h"
#include "json/json.h"

namespace fp8kv {

// Throws if the block is not an object.
QuantConfig read_quant_config(const Json& config, const std::optional<Json>& hf_quant);
QuantConfig read_quant_config(const Checkpoint& checkpoint);

// The place that makes weights quantised: "'m/config.json': quantization_config: quantises the
// weights with modelopt". "" if all weights are plain. `modules` are the linear layers.
std::string quantised_weights(const QuantConfig& quant, std::span<const std::string> modules);

// Reads config.json and, if it exists, hf_quant_config.json of a Hugging Face folder. Throws if the
// two disagree over the type of the cache, or if kv_cache_torch_dtype is not E4M3.
KvConfig read_kv_config(const Json& config, const std::optional<Json>& hf_quant);

}  // namespace fp8kv
