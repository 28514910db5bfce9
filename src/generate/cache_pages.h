// How many pages the cache of a generation gets.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "core/config.h"
#include "generate/requests.h"
#include "generate/runner.h"

namespace fp8kv {

// What is to go into the cache, in pages.
struct CacheDemand {
  int64_t least = 1;    // of the longest prompt with its answer
  int64_t at_once = 0;  // of all that run together
  int64_t all = 0;      // of everything
};
CacheDemand demand_of(std::span<const Request> requests, const GenerationOptions& options,
                      const ModelConfig& config);
// Of requests that are not known yet: the longest the model takes.
CacheDemand demand_of_stream(const GenerationOptions& options, const ModelConfig& config);

// Pages of the cache. With `limit_bytes`, what that leaves beside weights and working memory; with
// 0, most of what is free on the device. A device that does not tell how much is free (the CPU)
// gets what is needed, of a stream at most a quarter of the machine's memory. REQUIRES the runner's
// memory to be allocated already. Throws a resource Error that names the least that is needed when
// not even the longest prompt fits.
int64_t choose_pages(uint64_t limit_bytes, const Backend& backend, const Runner& runner,
                     uint64_t page_bytes, const CacheDemand& demand);

}  // namespace fp8kv
