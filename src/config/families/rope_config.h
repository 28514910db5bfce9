// How Q and K are rotated, by config.json: which has many spellings.
#pragma once

#include "config/families/rope_style.h"
#include "core/config.h"
#include "json/json.h"

namespace fp8kv {

// What scores are multiplied by where yarn stretches the rotation of latent attention: the square
// of its mscale_all_dim's factor; 1 where there is none.
double yarn_score_factor(const Json& text);

// Sets out.ropes and out.layer_ropes, and of models that yarn stretches max_seq_len.
// `rope_theta` with `rope_scaling` is the spelling up to transformers 4, `rope_parameters` that
// from 5 on. REQUIRES layers, head sizes and max_seq_len to be set.
void set_ropes(const Json& text, const RopeStyle& style, ModelConfig& out);

}  // namespace fp8kv
