// The base of rotation of a config.json that gives none.
#pragma once

#include "config/families/rope_style.h"
#include "json/json.h"

namespace fp8kv {

// The one of the family in transformers. Throws where versions of transformers differ in it.
double usual_theta(const Json& text, const RopeStyle& style);

}  // namespace fp8kv
