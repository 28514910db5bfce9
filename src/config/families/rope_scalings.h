// How a config stretches its rotations: one row for each type of scaling.
#pragma once

#include "config/families/rope_style.h"
#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

inline constexpr double kNoTheta = 0.0;  // the config gives no base

// The inputs for one rotation: the config, the object with the parameters, and the family's style.
struct RopeSource {
  const Json& text;
  const Json& scaling;
  const RopeStyle& style;
  const ModelConfig& model;
  int64_t head_dim = model.head_dim();
};

// Reads the rotated part of a head from `key` of `holder`, and sets the number of its elements, 0
// for all.
void set_part(const Json& holder, const char* key, const RopeStyle& style, int64_t head_dim,
              RopeConfig& out);

// Reads one rotation from the members of `from.scaling`.
void parse_scaling(const RopeSource& from, RopeConfig& out);

// The factor for scores when yarn stretches latent attention: the square of the factor that
// mscale_all_dim gives; 1 if there is none.
double yarn_score_factor(const Json& text);

}  // namespace fp8kv
