// Device in the simulator: the host's memory, allocated exactly so that AddressSanitizer sees an
// overrun.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "kernels/device.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// Enough for work to be spread, few enough to be run.
constexpr int kMultiprocessors = 2;
// What a device has to give: enough for tests, and a limit to run into.
constexpr size_t kMemory = size_t{256} << 20;

// A recorded step repeats launches and nothing else: on a real device what this refuses is an error
// or, worse, happens only once.
void refuse_while_recording(const char* what) {
  if (!sim::recording()) return;
  throw Error(cat(what, " while a step is being recorded"), "", ErrorKind::device);
}

}  // namespace

Device::Device()
    : name_(cat("sim: GPU kernels on the CPU, warps of ", kWarp)),
      multiprocessors_(kMultiprocessors) {}

Device::~Device() = default;

std::string Device::describe() const {
  return name_;
}

std::shared_ptr<std::byte> Device::allocate(size_t bytes) {
  refuse_while_recording("memory is allocated");
  void* memory = nullptr;
  if (bytes > free_memory() || posix_memalign(&memory, 256, bytes == 0 ? 1 : bytes) != 0) {
    throw Error(cat("cannot allocate ", human_bytes(bytes), " on the device"),
                "use a smaller batch, a shorter context or fewer cached tokens",
                ErrorKind::resource);
  }
  std::memset(memory, 0, bytes);
  *used_ += bytes;
  return {static_cast<std::byte*>(memory), [used = used_, bytes](std::byte* block) {
            *used -= bytes;
            std::free(block);
          }};
}

uint64_t Device::free_memory() const {
  return kMemory - *used_;
}

bool Device::can_record() const {
  return true;
}

void Device::begin_recording() {
  sim::begin_recording();
}

std::shared_ptr<void> Device::end_recording() {
  return std::make_shared<std::vector<sim::RecordedLaunch>>(sim::end_recording());
}

void Device::replay(const std::shared_ptr<void>& recording) {
  refuse_while_recording("a recorded step is run");
  const auto& launches = *static_cast<std::vector<sim::RecordedLaunch>*>(recording.get());
  for (const sim::RecordedLaunch& launch : launches) sim::launch(launch.shape, launch.body);
}

void Device::copy_in(std::byte* to, const std::byte* host, size_t bytes) {
  refuse_while_recording("memory is copied to the device");
  if (bytes != 0) std::memcpy(to, host, bytes);
}

void Device::copy_out(std::byte* host, const std::byte* from, size_t bytes) {
  refuse_while_recording("memory is copied from the device");
  if (bytes != 0) std::memcpy(host, from, bytes);
}

void Device::synchronise() {}

}  // namespace fp8kv::FP8KV_GPU
