// Stores an indexer's keys, those of whole blocks pooled.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

// See Backend::append_pooled. A key has the same bits however rows are cut into steps.
void cpu_append_pooled(const CpuKernels& kernels, ThreadPool& pool, const PooledAppend& args);

}  // namespace fp8kv
