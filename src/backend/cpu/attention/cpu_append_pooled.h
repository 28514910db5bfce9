// Stores an indexer's keys, those of whole blocks pooled.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/memory/cpu_context.h"

namespace fp8kv {

// See Backend::append_pooled. A key has the same bits however rows are cut into steps.
void cpu_append_pooled(const CpuContext& cpu, const PooledAppend& args);

}  // namespace fp8kv
