// The memory that a backend computes in: how tensors get there and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "backend/transfers.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// Memory use of a device that has its own memory.
struct DeviceMemory {
  uint64_t in_use = 0;           // bytes that this backend holds, as asked for
  uint64_t peak = 0;             // the most it has held
  std::optional<uint64_t> free;  // what the device has left; absent if it has no limit
};

class BackendMemory {
 public:
  virtual ~BackendMemory() = default;

  // Zeroed memory. Throws a resource error that names the size.
  virtual Tensor allocate(DType dtype, const Shape& shape) = 0;
  // A tensor with the host's contents. The CPU borrows the memory, which `keep_alive` holds.
  virtual Tensor upload(const ConstTensorView& host, std::shared_ptr<const void> keep_alive) = 0;
  // Overwrites existing backend memory. REQUIRES equal sizes.
  virtual void copy_in(const TensorView& to, const ConstTensorView& host) = 0;
  // Waits for all work before it, then copies. Faults of earlier ops surface here.
  virtual void download(const ConstTensorView& from, std::span<std::byte> host) = 0;

  // Only a device with its own memory has these two; the CPU uses host memory in place.
  virtual Transfers* transfers() { return nullptr; }
  virtual std::optional<DeviceMemory> memory() const { return std::nullopt; }
};

}  // namespace fp8kv
