// The rotation's default base, for a config.json without one.
#pragma once

#include "config/families/rope_style.h"
#include "json/json.h"

namespace fp8kv {

// Returns transformers' default for the family. Throws if versions of transformers have different
// defaults.
double usual_theta(const Json& text, const RopeStyle& style);

}  // namespace fp8kv
