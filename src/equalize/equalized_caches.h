// A table of the caches that a model can be equalised for.
#pragma once

#include <span>
#include <string>

#include "core/cache/kv_format.h"

namespace fp8kv {

struct EqualizedCache {
  const char* name;  // "int8"
  const char* full;  // the name in vLLM: "int8_per_token_head"
  KvFormat format;
  bool calibrated;  // needs stored scales, calibrated after equalising
};

std::span<const EqualizedCache> equalized_caches();
// Finds a cache by either name. Throws a usage Error that lists all names.
const EqualizedCache& equalized_cache_at(const std::string& name);

}  // namespace fp8kv
