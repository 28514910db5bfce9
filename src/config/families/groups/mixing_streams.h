// Hyper-connections whose streams mix (HyperConfig::rounds). Internal to config.
#pragma once

#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// Sets out.hyper by the keys of DeepSeek V4: hc_mult, hc_sinkhorn_iters and hc_eps.
void parse_mixing_streams(const Json& config, ModelConfig& out);

}  // namespace fp8kv
