// Which requests run together, from the first to the last, over one cache.
//
// Prompts are admitted in the order they come, each when there are pages for the longest it may
// become: an admitted one can always go on, so none is ever stopped half-way and nothing can
// deadlock; the first in line is never overtaken, so none waits for ever. Prompts are computed in
// chunks beside the sequences that decode, which leave as they end. Prompts that begin alike share
// the pages of what they have in common. Requests whose continuations are given are scored at once
// when their turn comes, as many together as there are.
#pragma once

#include <optional>

#include "base/thread_pool.h"
#include "core/config.h"
#include "generate/requests.h"
#include "generate/runner.h"
#include "model/kv_cache.h"

namespace fp8kv {

// A schedule runs on these.
struct ScheduleParts {
  const ModelConfig& config;
  const GenerationOptions& options;
  Runner& runner;
  KvCache& cache;
  std::optional<ThreadPool>& pool;  // made here when it is needed
};

// Until `source` has no more. REQUIRES requests that pass check_request and check_pages.
GenerationStats run_schedule(const ScheduleParts& parts, const RequestSource& source,
                             const GenerationEvents& events);

}  // namespace fp8kv
