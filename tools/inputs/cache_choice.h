// What the cache of `run` holds, and how much of it there is.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "backend/backend.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "cli/options.h"
#include "core/config.h"
#include "core/scales.h"
#include "generate/generate.h"

namespace fp8kv {

struct CacheChoice {
  DType dtype = DType::f16;
  std::optional<KvScales> scales;  // in the format of dtype; absent: 1 everywhere
  std::string why;
};

// Throws when an FP8 cache would have no scales and was not told to do without.
CacheChoice choose_cache(const RunOptions& options, const Checkpoint& checkpoint,
                         const ModelConfig& config, Log& log);

// What is to go into the cache. Of a stream, nothing is known before.
struct CacheDemand {
  int64_t least = 1;    // pages of the longest prompt with its answer
  int64_t at_once = 0;  // pages of all that run together
  int64_t all = 0;      // pages of everything
};
CacheDemand demand_of(std::span<const Request> requests, const GenerationOptions& options,
                      const ModelConfig& config);
CacheDemand demand_of_stream(const GenerationOptions& options, const ModelConfig& config);

// Pages of the cache: what --gpu-memory leaves beside weights and working memory; else what is free
// on the device; on the CPU what is needed, of a stream at most a quarter of the machine's memory.
// REQUIRES the runner's memory to be allocated already. Throws a resource Error that names the
// least that is needed when not even the longest prompt fits.
int64_t choose_pages(const RunOptions& options, const Backend& backend, const Runner& runner,
                     uint64_t page_bytes, const CacheDemand& demand);

}  // namespace fp8kv
