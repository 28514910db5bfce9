// Text generation for any number of prompts over one paged cache.
// A prompt's answer depends only on its own tokens and options, bit for bit; see Runner.
#pragma once

#include <optional>
#include <span>

#include "base/machine/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "generate/requests.h"
#include "generate/runner.h"
#include "model/cache/kv_cache.h"

namespace fp8kv {

class Generator {
 public:
  // Loads the model onto the backend. Callers make the cache afterwards, from the memory left.
  Generator(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
            const GenerationOptions& options);

  const Runner& runner() const { return runner_; }

  // Continues every prompt of `source`. REQUIRES requests that pass check_request and check_pages,
  // and a cache with the padding pages of runner().
  GenerationStats run(KvCache& cache, const RequestSource& source, const GenerationEvents& events);

 private:
  const ModelConfig& config_;
  GenerationOptions options_;
  Runner runner_;
  std::optional<ThreadPool> pool_;  // made at its first use
};

// Requests that are all known before the first one runs, and the cache made for them. Options and
// events must outlive it.
struct RequestList {
  KvCacheOptions cache;
  const KvScales* scales = nullptr;  // the cache's; null: 1 everywhere
  std::span<const Request> requests;
  const GenerationOptions& options;
  const GenerationEvents& events;
};

// Checks the requests, makes a Generator and a cache for them, and runs them.
GenerationStats generate(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                         const RequestList& list);

}  // namespace fp8kv
