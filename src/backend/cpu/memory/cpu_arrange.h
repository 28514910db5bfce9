// Weights in another order than their file has them.
#pragma once

#include "backend/backend.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

// See Backend::arrange.
void cpu_arrange(ThreadPool& pool, const ConstTensorView& from, Steps steps, const TensorView& to);

}  // namespace fp8kv
