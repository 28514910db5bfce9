// Sorts the keys of a config.json by their effect on the forward pass. A key is read, changes no
// number, matters to other models, or is unknown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace fp8kv {

// Returns the unknown keys of `object` and of its ropes in their order, with their path:
// "rope_scaling.blend". `reads` has the keys that architecture `name` read. Throws, naming the key,
// if a foreign key has a value that is not harmless.
std::vector<std::string> check_keys(const Json& object, const JsonReads& reads,
                                    std::string_view name);

}  // namespace fp8kv
