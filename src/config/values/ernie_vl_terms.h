// The config.json of ERNIE 4.5 VL with the numbers of its text alone.
#pragma once

#include "json/json.h"

namespace fp8kv {

// Returns `text` with one number for each key that has a list of two, for text and for images.
// Throws, naming the key, where such a list has another length, or where text and images differ in
// something that they share here. Other models come back unchanged.
Json with_ernie_vl_terms(const Json& text);

}  // namespace fp8kv
