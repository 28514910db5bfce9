// Drafters that keep no KV cache: they read the cache of the model that they draft for.
#pragma once

#include <optional>

#include "base/error.h"
#include "json/json.h"

namespace fp8kv {

// Why a folder with this config.json has no cache of its own, with a way out; nullopt if it may
// have one. Gemma 4's assistants have Q projections alone (transformers 5.24: gemma4_assistant).
std::optional<Error> reads_other_cache(const Json& config);

}  // namespace fp8kv
