// Rows that pool blocks of tokens.
#pragma once

#include "backend/backend.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

// See Backend::pool_tokens.
void cpu_pool_tokens(ThreadPool& pool, const TokenPools& args, const Batch& batch,
                     const TensorView& out);

}  // namespace fp8kv
