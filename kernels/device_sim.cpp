// Device in the simulator: the host's memory, allocated exactly so that AddressSanitizer sees an
// overrun.
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "kernels/device.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// Enough for work to be spread, few enough to be run.
constexpr int kMultiprocessors = 2;

}  // namespace

Device::Device()
    : name_(cat("sim: GPU kernels on the CPU, warps of ", kWarp)),
      multiprocessors_(kMultiprocessors) {}

Device::~Device() = default;

std::string Device::describe() const {
  return name_;
}

std::shared_ptr<std::byte> Device::allocate(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes == 0 ? 1 : bytes) != 0) {
    throw Error(cat("cannot allocate ", human_bytes(bytes), " on the device"), "",
                ErrorKind::resource);
  }
  std::memset(memory, 0, bytes);
  return {static_cast<std::byte*>(memory), [](std::byte* block) { std::free(block); }};
}

void Device::copy_in(std::byte* to, const std::byte* host, size_t bytes) {
  if (bytes != 0) std::memcpy(to, host, bytes);
}

void Device::copy_out(std::byte* host, const std::byte* from, size_t bytes) {
  if (bytes != 0) std::memcpy(host, from, bytes);
}

void Device::synchronise() {}

}  // namespace fp8kv::FP8KV_GPU
