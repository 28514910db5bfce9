// Device in the simulator: the host's memory, allocated exactly so that AddressSanitizer sees an
// overrun, and queues that run as sim_queues.h says.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "kernels/device.h"
#include "kernels/sim_queues.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// Enough for work to be spread, few enough to be run.
constexpr int kMultiprocessors = 2;
// What a device has to give: enough for tests, and a limit to run into.
constexpr size_t kMemory = size_t{1} << 30;

// A recorded step repeats launches and nothing else: on a real device what this refuses is an error
// or, worse, happens only once.
void refuse_while_recording(const char* what) {
  if (!sim::recording()) return;
  throw Error(cat(what, " while a step is being recorded"), "", ErrorKind::device);
}

constexpr size_t kPinnedAlignment = 4096;

std::byte* aligned_memory(size_t bytes, size_t alignment, const char* where) {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) {
    throw Error(cat("cannot allocate ", human_bytes(bytes), where), "", ErrorKind::resource);
  }
  return static_cast<std::byte*>(memory);
}

class SimTransfers final : public Transfers {
 public:
  SimTransfers() : queues_(kCopyQueues + 1) {}

  sim::Queues& queues() { return queues_; }

  // All 0xff, NaN, so that what is copied from it before it is filled shows.
  std::shared_ptr<std::byte> allocate_pinned(size_t bytes) override {
    std::byte* memory = aligned_memory(bytes, kPinnedAlignment, " of pinned host memory");
    std::memset(memory, 0xff, bytes);
    return {memory, [](std::byte* block) { std::free(block); }};
  }

  void to_device(int queue, std::byte* to, const std::byte* host, size_t bytes) override {
    queues_.submit(queue, [=] { std::memcpy(to, host, bytes); });
  }
  void to_host(int queue, std::byte* host, const std::byte* from, size_t bytes) override {
    queues_.submit(queue, [=] { std::memcpy(host, from, bytes); });
  }
  int make_mark() override { return queues_.make_mark(); }
  void record(int mark, int queue) override { queues_.record(mark, queue); }
  void wait(int queue, int mark) override { queues_.wait(queue, mark); }
  void wait_here(int mark) override { queues_.finish_mark(mark); }

 private:
  sim::Queues queues_;
};

}  // namespace

Device::Device()
    : name_(cat("sim: GPU kernels on the CPU, warps of ", kWarp)),
      multiprocessors_(kMultiprocessors) {
  auto transfers = std::make_shared<SimTransfers>();
  stream_ = &transfers->queues();
  transfers_ = std::move(transfers);
}

Device::~Device() = default;

std::string Device::describe() const {
  return name_;
}

std::string Device::driver() const {
  return "none, the device is simulated";
}

// Freeing waits for all work, as on a GPU; what that throws has nowhere to go.
std::shared_ptr<std::byte> Device::allocate(size_t bytes) {
  refuse_while_recording("memory is allocated");
  if (bytes > *Device::memory().free) {
    throw Error(cat("cannot allocate ", human_bytes(bytes), " on the device"),
                "use a smaller batch, a shorter context or fewer cached tokens",
                ErrorKind::resource);
  }
  std::byte* memory = aligned_memory(bytes, 256, " on the device");
  count_->add(bytes);
  const std::weak_ptr<Transfers> device = transfers_;
  const auto free_block = [bytes, count = count_, device, stream = stream_](std::byte* block) {
    try {
      if (device.lock()) stream->finish_all();
    } catch (const std::exception&) {
    }
    std::free(block);
    count->in_use -= bytes;
  };
  std::shared_ptr<std::byte> owner(memory, free_block);
  stream_->submit(kOpsQueue, [=] {
    if (bytes != 0) std::memset(memory, 0, bytes);
  });
  return owner;
}

bool Device::can_record() const {
  return true;
}

void Device::begin_recording() {
  sim::begin_recording();
}

std::shared_ptr<void> Device::end_recording() {
  return std::make_shared<std::vector<std::function<void()>>>(sim::end_recording());
}

void Device::replay(const std::shared_ptr<void>& recording) {
  refuse_while_recording("a recorded step is run");
  const auto launches = std::static_pointer_cast<std::vector<std::function<void()>>>(recording);
  stream_->submit(kOpsQueue, [launches] {
    for (const auto& launch : *launches) launch();
  });
}

void Device::copy_in(std::byte* to, const std::byte* host, size_t bytes) {
  refuse_while_recording("memory is copied to the device");
  if (bytes == 0) return;
  if (stream_->at_once()) {
    stream_->submit(kOpsQueue, [=] { std::memcpy(to, host, bytes); });
    return;
  }
  std::vector<std::byte> staged(host, host + bytes);
  stream_->submit(kOpsQueue, [to, staged = std::move(staged)] {
    std::memcpy(to, staged.data(), staged.size());
  });
}

void Device::copy_out(std::byte* host, const std::byte* from, size_t bytes) {
  refuse_while_recording("memory is copied from the device");
  synchronise();
  if (bytes != 0) std::memcpy(host, from, bytes);
}

DeviceMemory Device::memory() const {
  return {count_->in_use, count_->peak, kMemory - count_->in_use};
}

void Device::synchronise() {
  stream_->finish(kOpsQueue);
}

}  // namespace fp8kv::FP8KV_GPU
