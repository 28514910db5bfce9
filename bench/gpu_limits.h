// The measured limits of a GPU, to compare kernels with.
#pragma once

#include <cstddef>
#include <string_view>

namespace fp8kv::bench {

struct GpuLimits {
  size_t l2_bytes = 0;
  // Bytes/s; a copy counts both the bytes read and those written. 0 if not measured.
  double copy = 0;
  double read = 0;
  double to_device = 0;  // from pinned memory of the host
};

// Measures the device that the CUDA backend takes. A build without CUDA has none, and fails.
GpuLimits measure_gpu_limits();

// The limits of the device of a backend. Only those of CUDA are measured. An AMD GPU is taken to
// have the largest cache of any GPU, and what runs on the CPU to have none.
inline GpuLimits gpu_limits(std::string_view device) {
  if (device == "cuda") return measure_gpu_limits();
  GpuLimits assumed;
  if (device == "hip") assumed.l2_bytes = size_t{64} << 20;
  return assumed;
}

}  // namespace fp8kv::bench
