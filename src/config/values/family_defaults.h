// Fills in the sizes that transformers leaves out of a nested language model's config, because they
// equal the defaults of its family.
#pragma once

#include "json/json.h"

namespace fp8kv {

// Returns `text` with its family's defaults for missing keys. A null counts as present. Returns
// `text` unchanged if no defaults are known for its model_type. Source: the config classes of
// transformers 5.23.
Json with_family_defaults(const Json& text);

}  // namespace fp8kv
