// Attention to tokens in a window and to rows that pool blocks of tokens.
#pragma once

#include "backend/cpu/attention/cpu_attention.h"

namespace fp8kv {

// See AttentionOptions::pool. A row has the same bits whatever other rows there are.
void cpu_attention_pools(const CpuContext& cpu, const AttentionRows& rows, const PagedKv& kv,
                         const AttentionOptions& options);

}  // namespace fp8kv
