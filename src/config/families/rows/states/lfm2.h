// The keys and tensors that LFM2, its model with experts and LFM3 share.
#pragma once

#include "config/families/tensor_blocks.h"
#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// Reads the keys of convolutions and attention, and refuses layers of other kinds.
void parse_lfm2_layers(const Json& config, ModelConfig& out);

// Reads the keys of convolutions. `usual_width` replaces a missing conv_L_cache.
void parse_convolutions(const Json& config, int64_t usual_width, ModelConfig& out);

TensorRows lfm2_convolutions();
TensorRows lfm2_opening();  // embedding, and every layer up to the norm before the last part
TensorRows lfm2_mlp();
TensorRows lfm2_ending();

}  // namespace fp8kv
