// Chooses the tokens that rows see, for sparse attention.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/attention/cpu_attention.h"

namespace fp8kv {

// See Backend::choose_tokens. A row's choice has the same bits whatever else is in the batch.
void cpu_choose_tokens(const CpuContext& cpu, AttentionScratch& scratch, const TokenScores& args,
                       const Batch& batch, const TensorView& chosen);

}  // namespace fp8kv
