// Reads from config.json how Q and K are rotated. There are many spellings.
#pragma once

#include "config/families/rope_style.h"
#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// Sets out.ropes and out.layer_ropes, and raises max_seq_len if yarn stretches the model. Reads
// `rope_theta` with `rope_scaling` (up to transformers 4) and `rope_parameters` (from transformers
// 5). REQUIRES layers, head sizes and max_seq_len to be set.
void set_ropes(const Json& text, const RopeStyle& style, ModelConfig& out);

}  // namespace fp8kv
