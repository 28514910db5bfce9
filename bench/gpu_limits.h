// What a GPU can do at best, measured: the figures that its kernels are held against.
#pragma once

#include <cstddef>

namespace fp8kv::bench {

struct GpuLimits {
  size_t l2_bytes = 0;
  // Bytes/s. A copy's are those read and those written. 0 where nothing measures it.
  double copy = 0;
  double read = 0;
  double to_device = 0;  // from pinned memory of the host
};

// Of the device that the backend takes. Without CUDA nothing is measured, and the cache is taken
// to be as large as any.
GpuLimits measure_gpu_limits();

}  // namespace fp8kv::bench
