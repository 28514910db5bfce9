// The choice of dtype and scales for the cache of `run`.
#pragma once

#include <optional>
#include <string>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/cache/cache_type.h"
#include "core/model/config.h"
#include "core/scales/scales.h"
#include "options/options.h"

namespace fp8kv {

struct CacheChoice {
  ModelCache dtype;
  std::optional<KvScales> scales;  // in the format of dtype; nullopt: 1 everywhere
  std::string why;
};

// Throws if an FP8 cache would have no scales, unless --unit-scales allows that.
CacheChoice choose_cache(const RunOptions& options, const Checkpoint& checkpoint,
                         const ModelConfig& config, Log& log);

}  // namespace fp8kv
