// Text generation for any number of prompts over one paged cache.
// What a prompt yields depends on its own tokens and options alone, bit for bit; see Runner.
#pragma once

#include <optional>
#include <span>

#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "generate/requests.h"
#include "generate/runner.h"
#include "model/kv_cache.h"

namespace fp8kv {

class Generator {
 public:
  // Puts the model on the backend. A cache is made after that, of what is left.
  Generator(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
            const GenerationOptions& options);

  const Runner& runner() const { return runner_; }

  // Continues every prompt of `source`. REQUIRES requests that pass both checks, and the padding
  // pages of runner().
  GenerationStats run(KvCache& cache, const RequestSource& source, const GenerationEvents& events);

 private:
  const ModelConfig& config_;
  GenerationOptions options_;
  Runner runner_;
  std::optional<ThreadPool> pool_;  // made when it is needed
};

// All of that for requests that are there already; checks them.
GenerationStats generate(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                         const KvCacheOptions& cache, const KvScales* scales,
                         std::span<const Request> requests, const GenerationOptions& options,
                         const GenerationEvents& events);

}  // namespace fp8kv
