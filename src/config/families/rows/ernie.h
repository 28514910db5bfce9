// ERNIE 4.5 with experts, which is also the language model of ERNIE 4.5 VL. Internal to config.
#pragma once

#include <span>

#include "core/model/config.h"
#include "core/model/tensor_row.h"
#include "json/json.h"

namespace fp8kv {

// Reads the keys for experts.
void parse_ernie4_5_moe(const Json& config, ModelConfig& out);

// The tensors of files that store each expert apart.
std::span<const TensorRow> ernie4_5_moe_tensors();

}  // namespace fp8kv
