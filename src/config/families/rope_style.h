// How a family rotates Q and K: one column of the table of architectures.
#pragma once

#include "core/model/config.h"

namespace fp8kv {

// A family's defaults for missing keys, and the keys that it reads.
struct RopeStyle {
  bool none = false;       // no layer rotates
  double theta = 10000.0;  // default base in transformers 5.24
  // The default base in transformers 4.57, if it differs; then the config must give a base. 0: it
  // is the same.
  double older_theta = 0.0;
  double part = 1.0;        // the part of a head that rotates
  bool reads_part = false;  // reads partial_rotary_factor; else a value below 1 is refused
  // The family checks partial_rotary_factor itself: with latent attention, sizes of Q's parts say
  // what rotates.
  bool checks_part = false;
  RopePairs pairs = RopePairs::halves;
  bool reads_mscale = false;   // reads yarn's mscale and mscale_all_dim; else they are refused
  bool reads_mscales = false;  // reads longrope's short_mscale and long_mscale; else the same
  // Layers with a window have their own plain rotation, with the base under `local_key` or else
  // `local_theta`. From transformers 5 on, rope_parameters has an object for each kind of layer.
  bool by_layer_type = false;
  const char* local_key = "rope_theta";
  double local_theta = 10000.0;
  // The default part of the pairs that rotate in layers without a window: Gemma 4.
  double full_turning = 1.0;
  // The names of two keys in older configs.
  const char* theta_key = "rope_theta";
  const char* part_key = "partial_rotary_factor";
  // Dynamic scaling may give alpha, which raises the base for all positions: HunYuan.
  bool reads_alpha = false;
};

}  // namespace fp8kv
