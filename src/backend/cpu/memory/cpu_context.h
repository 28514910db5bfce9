// The kernels and threads of the CPU, which every op that needs both takes as one value. Has no
// memory of ops: each op names its own. Internal to backend/cpu.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

struct CpuContext {
  const CpuKernels& kernels;
  ThreadPool& pool;
  StepSize computed_as;  // see Backend::compute_as
};

}  // namespace fp8kv
