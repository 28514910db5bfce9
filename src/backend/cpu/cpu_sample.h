// The next token of each row.
#pragma once

#include "backend/backend.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

// See Backend::sample.
void cpu_sample(ThreadPool& pool, const ConstTensorView& logits, const Sampling& sampling,
                const TensorView& ids);

}  // namespace fp8kv
