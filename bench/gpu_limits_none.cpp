#include "base/error.h"
#include "gpu_limits.h"

namespace fp8kv::bench {

GpuLimits measure_gpu_limits() {
  fail("this build cannot measure a GPU: it is without CUDA");
}

}  // namespace fp8kv::bench
