// Finds in config.json how large the state of a layer is.
#pragma once

#include <cstdint>

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Bytes of state per sequence in one layer, as runtimes store it: a recurrent state in f32, and the
// convolution's last tokens in 16 bit. 0 if the config does not give the sizes in a known form.
uint64_t state_bytes_of(const Json& text);

// Sets the states of layers with short convolutions: Inkling. REQUIRES known layers.
void add_short_conv_states(const Json& text, ModelDescription& out);

// Adds the states of the convolutions over n-grams: Qwen 4 Exp. REQUIRES known layers.
void add_ngram_states(const Json& text, ModelDescription& out);

}  // namespace fp8kv
