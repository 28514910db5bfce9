// The measured limits of a GPU, to compare kernels with.
#pragma once

#include <cstddef>

namespace fp8kv::bench {

struct GpuLimits {
  size_t l2_bytes = 0;
  // Bytes/s; a copy counts both the bytes read and those written. 0 if not measured.
  double copy = 0;
  double read = 0;
  double to_device = 0;  // from pinned memory of the host
};

// Measures the device that the backend takes. Without CUDA it measures nothing, and assumes the
// largest cache of any GPU.
GpuLimits measure_gpu_limits();

}  // namespace fp8kv::bench
