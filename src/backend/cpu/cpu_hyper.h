// Hyper-connections: shares by which rows read and write their residual streams.
#pragma once

#include "backend/backend.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

// See Backend::hyper_shares.
void cpu_hyper_shares(ThreadPool& pool, const HyperRows& rows, const HyperConfig& config,
                      const HyperShares& out);

}  // namespace fp8kv
