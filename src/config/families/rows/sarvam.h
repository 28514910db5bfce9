// Reads the experts of Sarvam's two families, whose published configs name keys in their own way,
// and the tensors of Sarvam 30B, which Ling 2 has too. Internal to config.
#pragma once

#include <span>

#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

void parse_sarvam_experts(const Json& config, ModelConfig& out);

std::span<const TensorRow> sarvam_moe_tensors();

}  // namespace fp8kv
