// Finds in config.json how large the state of a layer is.
#pragma once

#include <cstdint>

#include "json/json.h"

namespace fp8kv {

// Bytes of state per sequence in one layer, as runtimes store it: a recurrent state in f32, and the
// convolution's last tokens in 16 bit. 0 if the config does not give the sizes in a known form.
uint64_t state_bytes_of(const Json& text);

}  // namespace fp8kv
