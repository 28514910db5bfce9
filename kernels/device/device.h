// A backend's device: its stream and its memory. One per backend; all work goes through its one
// stream, in order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "kernels/device/faults.h"
#include "kernels/device/gpu.h"
#include "kernels/device/staging.h"

namespace fp8kv::FP8KV_GPU {

// How many bytes of a device's memory are allocated. Lives until the last block is freed, which may
// be after the Device.
struct MemoryCount {
  void add(size_t bytes) {
    in_use += bytes;
    if (in_use > peak) peak = in_use.load();
  }
  std::atomic<uint64_t> in_use{0};
  std::atomic<uint64_t> peak{0};  // only the thread that allocates raises it
};

class Device {
 public:
  // Takes the first device. Throws a device error with the reason if there is none.
  Device();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // For example "cuda: NVIDIA H100 80GB HBM3, 79.1 GiB".
  std::string describe() const;
  // For example "CUDA 13.0, the module is built with 12.8".
  std::string driver() const;
  // Valid as long as this.
  Stream stream() const { return stream_; }
  int multiprocessors() const { return multiprocessors_; }

  // Returns zeroed memory. Throws a resource error that names the size.
  std::shared_ptr<std::byte> allocate(size_t bytes);
  // The host's memory may change once this returns.
  void copy_in(std::byte* to, const std::byte* host, size_t bytes);

  // See Backend. Devices cannot record while every launch is waited for (FP8KV_SYNC).
  bool can_record() const;
  void begin_recording();
  std::shared_ptr<void> end_recording();
  void replay(const std::shared_ptr<void>& recording);

  // Waits for all work before it.
  void copy_out(std::byte* host, const std::byte* from, size_t bytes);

  DeviceMemory memory() const;
  Transfers& transfers() { return *transfers_; }

 private:
  Pending pending_;
  Stream stream_{};
  std::string name_;
  int multiprocessors_ = 1;
  std::shared_ptr<MemoryCount> count_ = std::make_shared<MemoryCount>();
  std::shared_ptr<Transfers> transfers_;
  std::unique_ptr<Staging> staging_;
};

}  // namespace fp8kv::FP8KV_GPU
