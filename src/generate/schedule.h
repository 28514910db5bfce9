// Decides which requests run together over one cache.
//
// A prompt is admitted once there are pages for its longest possible sequence. So an admitted
// sequence never stops half-way, and there is no deadlock. Prompts are admitted strictly in order
// of arrival, so none waits for ever. Prompts are computed in chunks beside the decoding sequences,
// which leave as they end. Prompts that begin alike share the pages of their common prefix.
// Requests with continuations are scored in one go when their turn comes, together with those
// behind them.
#pragma once

#include <optional>

#include "base/machine/thread_pool.h"
#include "core/model/config.h"
#include "generate/requests.h"
#include "generate/runner.h"
#include "model/cache/kv_cache.h"

namespace fp8kv {

// The objects that a schedule works with.
struct ScheduleParts {
  const ModelConfig& config;
  const GenerationOptions& options;
  Runner& runner;
  KvCache& cache;
  std::optional<ThreadPool>& pool;  // the schedule makes it at its first use
};

// Runs requests until `source` ends. REQUIRES requests that pass check_request and check_pages.
GenerationStats run_schedule(const ScheduleParts& parts, const RequestSource& source,
                             const GenerationEvents& events);

}  // namespace fp8kv
