// How a family rotates Q and K: a column of the table of architectures.
#pragma once

#include "core/config.h"

namespace fp8kv {

// The defaults of a family for keys that its configs leave out, and the keys that it reads.
struct RopeStyle {
  bool none = false;       // layers rotate nothing
  double theta = 10000.0;  // in transformers 5.24
  // In transformers 4.57, if it has another; then a config has to say it. 0: the same.
  double older_theta = 0.0;
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
  // The names of these two keys in older configs.
  const char* theta_key = "rope_theta";
  const char* part_key = "partial_rotary_factor";
};

}  // namespace fp8kv
