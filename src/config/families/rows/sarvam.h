// Reads the experts of Sarvam's two families, whose published configs name keys in their own way.
// Internal to config.
#pragma once

#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

void parse_sarvam_experts(const Json& config, ModelConfig& out);

}  // namespace fp8kv
