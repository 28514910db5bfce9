// Choosing experts for rows of logits.
#pragma once

#include "backend/backend.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

// See Backend::route.
void cpu_route(ThreadPool& pool, const ConstTensorView& logits, const Routing& routing,
               const RouterTerms& terms, const Routed& out);

}  // namespace fp8kv
