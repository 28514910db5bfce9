#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "bench/gpu_limits.h"
#include "kernels/device/gpu_runtime.h"

namespace fp8kv::bench {
namespace {

using FP8KV_GPU::check;

constexpr int kThreads = 512;
constexpr int kLoads = 4;  // in flight in each thread
constexpr size_t kBytes = size_t{1} << 30;
constexpr int kRuns = 50;

// Every thread ORs what it reads. It writes the result only at a value that the data cannot give.
__global__ void read_kernel(const uint4* data, size_t count, uint32_t* never) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  uint32_t sum = 0;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += kLoads * step) {
    uint4 piece[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const size_t at = i + load * step;
      piece[load] = at < count ? __ldcs(data + at) : uint4{};
    }
#pragma unroll
    for (const uint4& each : piece) sum |= each.x | each.y | each.z | each.w;
  }
  if (sum == 0xFFFFFFFFu) *never = sum;
}

__global__ void copy_kernel(const uint4* from, uint4* to, size_t count) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    __stcs(to + i, __ldcs(from + i));
  }
}

std::shared_ptr<void> device_memory(size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "allocating");
  check(cudaMemset(memory, 0, bytes), "clearing");
  return {memory, [](void* block) { static_cast<void>(cudaFree(block)); }};
}

std::shared_ptr<void> pinned_memory(size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "allocating pinned memory");
  return {memory, [](void* block) { static_cast<void>(cudaFreeHost(block)); }};
}

// Seconds of one run: the median of kRuns, after three to warm up.
double median_time(const std::function<void()>& work) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "making an event");
  check(cudaEventCreate(&end), "making an event");
  std::vector<double> times;
  for (int run = -3; run < kRuns; ++run) {
    check(cudaEventRecord(begin), "recording an event");
    work();
    check(cudaEventRecord(end), "recording an event");
    check(cudaEventSynchronize(end), "waiting for an event");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "reading an event");
    if (run >= 0) times.push_back(ms / 1000.0);
  }
  static_cast<void>(cudaEventDestroy(begin));
  static_cast<void>(cudaEventDestroy(end));
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

}  // namespace

GpuLimits measure_gpu_limits() {
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "asking for the device");
  const auto blocks = static_cast<unsigned>(4 * device.multiProcessorCount);
  const auto from = device_memory(kBytes), to = device_memory(kBytes);
  const size_t count = kBytes / sizeof(uint4);
  GpuLimits limits;
  limits.l2_bytes = static_cast<size_t>(device.l2CacheSize);
  limits.read = kBytes / median_time([&] {
                  read_kernel<<<blocks, kThreads>>>(static_cast<const uint4*>(from.get()), count,
                                                    static_cast<uint32_t*>(to.get()));
                });
  limits.copy = 2.0 * kBytes / median_time([&] {
                  copy_kernel<<<blocks, kThreads>>>(static_cast<const uint4*>(from.get()),
                                                    static_cast<uint4*>(to.get()), count);
                });
  const auto host = pinned_memory(kBytes / 4);
  limits.to_device =
      kBytes / 4.0 / median_time([&] {
        check(cudaMemcpyAsync(to.get(), host.get(), kBytes / 4, cudaMemcpyHostToDevice), "copying");
      });
  check(cudaGetLastError(), "measuring the device");
  return limits;
}

}  // namespace fp8kv::bench
