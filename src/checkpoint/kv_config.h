// What of a config decides K and V, as short texts; see core/model_identity.h.
#pragma once

#include <vector>

#include "core/config.h"
#include "core/model_identity.h"

namespace fp8kv {

// The numbers of the config from which K and V follow, as they were understood: another spelling of
// config.json gives the same. What is at its default in BlockConfig is left out.
std::vector<ConfigNumber> kv_config(const ModelConfig& config);

}  // namespace fp8kv
