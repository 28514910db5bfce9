// What a sequence takes in the layers that keep a state, by config.json.
#pragma once

#include <cstdint>

#include "json/json.h"

namespace fp8kv {

// Bytes of the state that one layer keeps of a sequence: a recurrent state in f32, and the last
// tokens of its convolution in 16 bit, as runtimes have them. 0 where the config does not say it in
// a way that is known here.
uint64_t state_bytes_of(const Json& text);

}  // namespace fp8kv
