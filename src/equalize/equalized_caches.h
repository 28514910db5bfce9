// The caches that a model can be equalised for, as one table.
#pragma once

#include <span>
#include <string>

#include "core/kv_format.h"

namespace fp8kv {

struct EqualizedCache {
  const char* name;  // "int8"
  const char* full;  // "int8_per_token_head": vLLM's
  KvFormat format;
  bool calibrated;  // it needs stored scales, to be made after equalising
};

std::span<const EqualizedCache> equalized_caches();
// By either name. Throws a usage Error that lists them.
const EqualizedCache& equalized_cache_at(const std::string& name);

}  // namespace fp8kv
