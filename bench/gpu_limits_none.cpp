#include "gpu_limits.h"

namespace fp8kv::bench {

GpuLimits measure_gpu_limits() {
  GpuLimits limits;
  limits.l2_bytes = size_t{64} << 20;
  return limits;
}

}  // namespace fp8kv::bench
