// How the layers of a family mix tokens if the config does not list it. Internal to config.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

using Mixings = std::vector<Mixing>;

// One layer of every `period` has full attention: the one at place `full`. All others mix by
// `other`.
Mixings periodic(int64_t period, int64_t full, Mixing other, int64_t n_layers);

// Throws for a family whose layers must be listed.
Mixings usual_mixings(const Json& text, const ModelDescription& model);

bool is_zamba2(const Json& text);

}  // namespace fp8kv
