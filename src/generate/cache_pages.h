// Chooses how many pages the paged cache of a generation gets.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "core/model/config.h"
#include "generate/requests.h"
#include "generate/runner.h"

namespace fp8kv {

// The pages that requests need in the cache.
struct CacheDemand {
  int64_t least = 1;    // for the longest prompt with its answer
  int64_t at_once = 0;  // for the requests that run together
  int64_t all = 0;      // for all requests
};
CacheDemand demand_of(std::span<const Request> requests, const GenerationOptions& options,
                      const ModelConfig& config);
// Requests from a stream are not known yet, so each may be as long as the model's context.
CacheDemand demand_of_stream(const GenerationOptions& options, const ModelConfig& config);

// Returns the number of pages. Weights, working memory and pages together fit in `limit_bytes`.
// With 0, pages take most of the device's free memory. The CPU does not tell its free memory: it
// gets the pages needed, for a stream at most a quarter of the machine's memory. REQUIRES that the
// runner has allocated its memory. Throws a resource Error if the longest prompt does not fit. The
// error names the bytes needed.
int64_t choose_pages(uint64_t limit_bytes, const Backend& backend, const Runner& runner,
                     uint64_t page_bytes, const CacheDemand& demand);

}  // namespace fp8kv
