// The clamped SwiGLUs of a model, as numbers of its identity.
#pragma once

#include "checkpoint/identity/config_numbers.h"
#include "core/model/config.h"

namespace fp8kv {

void add_swiglus(const ModelConfig& config, ConfigNumbers& out);

}  // namespace fp8kv
