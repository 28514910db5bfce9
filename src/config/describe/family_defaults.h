// What transformers leaves out of the config of a language model inside of another: the sizes that
// are those of its family.
#pragma once

#include "json/json.h"

namespace fp8kv {

// `text` with what its family has for the keys it lacks; as it is where its model_type is of no
// family whose sizes are left out. A null counts as there.
// Source: the config classes of transformers 5.23.
Json with_family_defaults(const Json& text);

}  // namespace fp8kv
