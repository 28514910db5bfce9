#include "generate/cache_pages.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/machine/machine_memory.h"
#include "model/cache/kv_cache.h"

namespace fp8kv {
namespace {

// The share of the device's free memory that pages may take. The first steps need the rest: for
// partial results, recorded steps and the driver.
constexpr double kShareOfFree = 0.9;

// Rounds up, so that the size in an error message is large enough.
std::string enough_bytes(uint64_t bytes) {
  constexpr uint64_t kKi = 1024, kMi = kKi * kKi;
  if (bytes < 16 * kMi) return cat((bytes + kKi - 1) / kKi, "KiB");
  return cat((bytes + kMi - 1) / kMi, "MiB");
}

}  // namespace

CacheDemand demand_of(std::span<const Request> requests, const GenerationOptions& options,
                      const ModelConfig& config) {
  CacheDemand demand{1, pages_needed(requests, options, config.max_seq_len), 0};
  for (const Request& request : requests) {
    const int64_t pages = KvCache::pages_for(longest(request, config.max_seq_len));
    demand.least = std::max(demand.least, pages);
    demand.all += pages;
  }
  return demand;
}

CacheDemand demand_of_stream(const GenerationOptions& options, const ModelConfig& config) {
  const int64_t at_once = options.max_batch * KvCache::pages_for(config.max_seq_len);
  return {1, at_once, kMostPages};
}

int64_t choose_pages(uint64_t limit_bytes, const Backend& backend, const Runner& runner,
                     uint64_t page_bytes, const CacheDemand& demand) {
  const uint64_t padding = static_cast<uint64_t>(runner.padding_pages()) * page_bytes;
  const uint64_t fixed = runner.weight_bytes() + runner.working_bytes() + padding;
  const std::optional<DeviceMemory> memory = backend.memory();
  const std::optional<uint64_t> free = memory ? memory->free : std::nullopt;
  uint64_t bytes_for_pages = 0;
  std::string found;
  if (limit_bytes > 0) {
    bytes_for_pages = limit_bytes > fixed ? limit_bytes - fixed : 0;
  } else if (free) {
    const auto usable = static_cast<uint64_t>(static_cast<double>(*free) * kShareOfFree);
    bytes_for_pages = usable > padding ? usable - padding : 0;
    found = cat("the device has ", human_bytes(*free), " left: ");
  } else {
    const auto share = static_cast<int64_t>(machine_memory().total_bytes / 4 / page_bytes);
    return demand.all < kMostPages
               ? demand.at_once
               : std::clamp<int64_t>(demand.at_once, 1, std::max<int64_t>(share, 1));
  }
  const auto pages = static_cast<int64_t>(
      std::min<uint64_t>(bytes_for_pages / page_bytes, static_cast<uint64_t>(kMostPages)));
  if (pages >= demand.least) return std::min(pages, std::max(demand.all, demand.at_once));
  const uint64_t needed = static_cast<uint64_t>(demand.least) * page_bytes;
  throw Error(cat(found, enough_bytes(needed),
                  " of cache are needed for the longest prompt and its answer (",
                  count_of(static_cast<uint64_t>(demand.least), "page"), ") beside ",
                  human_bytes(runner.weight_bytes()), " of weights and ",
                  human_bytes(runner.working_bytes() + padding), " of working memory, and ",
                  human_bytes(bytes_for_pages), " are left for it"),
              limit_bytes > 0 ? cat("give at least ", enough_bytes(fixed + needed),
                                    ", a shorter prompt, fewer new tokens, or an FP8 cache")
                              : "give a shorter prompt, fewer new tokens, a smaller batch or an "
                                "FP8 cache",
              ErrorKind::resource);
}

}  // namespace fp8kv
