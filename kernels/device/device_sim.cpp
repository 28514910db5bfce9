// Device in the simulator. Its memory is the host's, allocated in exact sizes so that
// AddressSanitizer sees an overrun. sim_queues.h runs its queues.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "kernels/device/device.h"
#include "kernels/sim/sim_queues.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// Enough to spread work over, and few enough to simulate.
constexpr int kMultiprocessors = 2;
// The device's memory: enough for tests, and small enough to run out of.
constexpr size_t kMemory = size_t{1} << 30;

// A recorded step repeats launches and nothing else. On a real device, the calls refused here are
// errors or, worse, happen only once.
void refuse_while_recording(const char* what) {
  if (!sim::recording()) return;
  throw Error(cat(what, " while a step is being recorded"), "", ErrorKind::device);
}

constexpr size_t kPinnedAlignment = 4096;

std::byte* aligned_memory(size_t bytes, size_t alignment, const char* where) {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) {
    throw Error::out_of_memory(cat("cannot allocate ", human_bytes(bytes), where));
  }
  return static_cast<std::byte*>(memory);
}

// For calls that give the device work.
void check_given(const Stream& stream, const std::string& what) {
  const std::string reason = stream.faults->of_giving();
  if (!reason.empty()) throw fault_error(what, reason, *stream.pending);
}

// For calls that wait for the device.
void check_waited(const Stream& stream, const std::string& what) {
  const std::string reason = stream.faults->of_waiting();
  if (!reason.empty()) throw fault_error(what, reason, *stream.pending);
}

void wait_for_ops(const Stream& stream, const std::string& what) {
  check_waited(stream, what);
  stream.handle->finish(kOpsQueue);
  stream.pending->clear();
}

// Queues work in order with launches.
void add_work(const Stream& stream, std::function<void()> work) {
  if (stream.faults->runs()) stream.handle->submit(kOpsQueue, std::move(work));
}

// A recorded step, and the names of the ops that it launches.
struct Recorded {
  std::vector<std::function<void()>> work;
  std::vector<const char*> ops;
};

class SimTransfers final : public Transfers {
 public:
  explicit SimTransfers(Pending& pending) : pending_(pending), queues_(kCopyQueues + 1) {}

  Stream stream() { return {&queues_, &faults_, &pending_}; }

  // Filled with 0xff, which is NaN: copies from memory that was never filled become visible.
  std::shared_ptr<std::byte> allocate_pinned(size_t bytes) override {
    std::byte* memory = aligned_memory(bytes, kPinnedAlignment, " of pinned host memory");
    std::memset(memory, 0xff, bytes);
    return {memory, [](std::byte* block) { std::free(block); }};
  }

  void to_device(int queue, std::byte* to, const std::byte* host, size_t bytes) override {
    copy(queue, to, host, bytes, "copying to the device");
  }
  void to_host(int queue, std::byte* host, const std::byte* from, size_t bytes) override {
    copy(queue, host, from, bytes, "copying from the device");
  }
  int make_mark() override {
    check_given(stream(), "making a mark");
    return queues_.make_mark();
  }
  void record(int mark, int queue) override {
    check_given(stream(), "recording a mark");
    queues_.record(mark, queue);
  }
  void wait(int queue, int mark) override {
    check_given(stream(), "waiting for a mark");
    queues_.wait(queue, mark);
  }
  void wait_here(int mark) override {
    check_waited(stream(), "waiting for the device");
    queues_.finish_mark(mark);
  }

 private:
  void copy(int queue, std::byte* to, const std::byte* from, size_t bytes, const char* what) {
    check_given(stream(), what);
    if (faults_.runs()) queues_.submit(queue, [=] { std::memcpy(to, from, bytes); });
    if (sync_after_launch()) {
      check_waited(stream(), what);
      queues_.finish(queue);
    } else {
      pending_.add_copy_beside();
    }
  }

  Pending& pending_;
  sim::Faults faults_;
  sim::Queues queues_;
};

}  // namespace

void give(const Stream& stream, const char* name, const std::function<void()>& work) {
  if (!stream.handle || sim::recording()) {
    if (stream.handle) stream.faults->record(name);
    work();
    return;
  }
  stream.faults->launch(name);
  check_given(stream, cat("launching ", name));
  add_work(stream, work);
  if (sync_after_launch()) {
    wait_for_ops(stream, name);
  } else {
    stream.pending->add_launch(name);
  }
}

Device::Device()
    : name_(cat("sim: GPU kernels on the CPU, warps of ", kWarp)),
      multiprocessors_(kMultiprocessors) {
  auto transfers = std::make_shared<SimTransfers>(pending_);
  stream_ = transfers->stream();
  transfers_ = std::move(transfers);
  staging_ = std::make_unique<Staging>(*transfers_);
}

Device::~Device() = default;

std::string Device::describe() const {
  return name_;
}

std::string Device::driver() const {
  return "none, the device is simulated";
}

// Freeing waits for all work, as on a GPU, and ignores its errors, since nobody could take them.
// Work that a lost device has not done is never done.
std::shared_ptr<std::byte> Device::allocate(size_t bytes) {
  refuse_while_recording("memory is allocated");
  check_given(stream_, cat("allocating ", human_bytes(bytes), " on the device"));
  const uint64_t free = stream_.faults->allocate() ? *Device::memory().free : 0;
  if (bytes > free) throw full_error(bytes, free);
  std::byte* memory = aligned_memory(bytes, 256, " on the device");
  count_->add(bytes);
  const std::weak_ptr<Transfers> device = transfers_;
  const auto free_block = [bytes, count = count_, device, stream = stream_](std::byte* block) {
    try {
      if (const auto alive = device.lock(); alive && stream.faults->runs()) {
        stream.handle->finish_all();
      }
    } catch (const std::exception&) {
    }
    std::free(block);
    count->in_use -= bytes;
  };
  std::shared_ptr<std::byte> owner(memory, free_block);
  add_work(stream_, [=] {
    if (bytes != 0) std::memset(memory, 0, bytes);
  });
  return owner;
}

bool Device::can_record() const {
  return !sync_after_launch();
}

void Device::begin_recording() {
  check_given(stream_, "recording a step");
  sim::begin_recording();
}

std::shared_ptr<void> Device::end_recording() {
  return std::make_shared<Recorded>(
      Recorded{sim::end_recording(), stream_.faults->take_recorded()});
}

void Device::replay(const std::shared_ptr<void>& recording) {
  refuse_while_recording("a recorded step is run");
  const auto recorded = std::static_pointer_cast<const Recorded>(recording);
  for (const char* op : recorded->ops) stream_.faults->launch(op);
  check_given(stream_, "running a recorded step");
  add_work(stream_, [recorded] {
    for (const auto& each : recorded->work) each();
  });
  pending_.add_launch("a recorded step");
}

void Device::copy_in(std::byte* to, const std::byte* host, size_t bytes) {
  refuse_while_recording("memory is copied to the device");
  check_given(stream_, "copying to the device");
  staging_->copy_in(to, host, bytes, [&](std::byte* piece, const std::byte* from, size_t length) {
    add_work(stream_, [=] { std::memcpy(piece, from, length); });
  });
  if (sync_after_launch()) {
    wait_for_ops(stream_, "copying to the device");
  } else {
    pending_.add_copy();
  }
}

void Device::copy_out(std::byte* host, const std::byte* from, size_t bytes) {
  refuse_while_recording("memory is copied from the device");
  wait_for_ops(stream_, "copying from the device");
  if (bytes != 0) std::memcpy(host, from, bytes);
}

DeviceMemory Device::memory() const {
  return {count_->in_use, count_->peak, kMemory - count_->in_use};
}

}  // namespace fp8kv::FP8KV_GPU
