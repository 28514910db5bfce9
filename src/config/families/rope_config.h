// How Q and K are rotated, by config.json: which has many spellings.
#pragma once

#include "core/config.h"
#include "json/json.h"

namespace fp8kv {

// What a family takes for what its configs leave out, and what of them it reads.
struct RopeStyle {
  bool none = false;  // layers rotate nothing
  double theta = 10000.0;
  double part = 1.0;        // of a head that is rotated
  bool reads_part = false;  // partial_rotary_factor; else one below 1 is refused
  RopePairs pairs = RopePairs::halves;
  bool reads_mscale = false;  // yarn's mscale and mscale_all_dim; else they are refused
  // Layers with a window rotate in a way of their own: plainly, by the base that `local_key` gives
  // or else `local_theta`; from transformers 5 on, rope_parameters has an object for each kind.
  bool by_layer_type = false;
  const char* local_key = "rope_theta";
  double local_theta = 10000.0;
  // The others turn this part of their pairs where the config says nothing: Gemma 4.
  double full_turning = 1.0;
  // What older configs call these two.
  const char* theta_key = "rope_theta";
  const char* part_key = "partial_rotary_factor";
};

// What scores are multiplied by where yarn stretches the rotation of latent attention: the square
// of its mscale_all_dim's factor; 1 where there is none.
double yarn_score_factor(const Json& text);

// Sets out.ropes and out.layer_ropes, and of models that yarn stretches max_seq_len.
// `rope_theta` with `rope_scaling` is the spelling up to transformers 4, `rope_parameters` that
// from 5 on. REQUIRES layers, head sizes and max_seq_len to be set.
void set_ropes(const Json& text, const RopeStyle& style, ModelConfig& out);

}  // namespace fp8kv
