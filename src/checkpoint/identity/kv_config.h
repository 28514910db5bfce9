// The parts of a config that decide K and V, as short texts; see core/model/model_identity.h.
#pragma once

#include <vector>

#include "core/model/config.h"
#include "core/model/model_identity.h"

namespace fp8kv {

// The config numbers that influence K and V, after parsing, so that another spelling of config.json
// gives the same result. Defaults of BlockConfig are left out.
std::vector<ConfigNumber> kv_config(const ModelConfig& config);

}  // namespace fp8kv
