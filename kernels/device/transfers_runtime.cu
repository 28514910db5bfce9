#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "kernels/device/transfers_runtime.h"

namespace fp8kv::FP8KV_GPU {
namespace {

using Event = FP8KV_RUNTIME(Event_t);

#if defined(__CUDACC__)
Status allocate_host(void** memory, size_t bytes) {
  return cudaHostAlloc(memory, bytes, cudaHostAllocDefault);
}
Status free_host(void* memory) {
  return cudaFreeHost(memory);
}
#else
Status allocate_host(void** memory, size_t bytes) {
  return hipHostMalloc(memory, bytes, hipHostMallocDefault);
}
Status free_host(void* memory) {
  return hipHostFree(memory);
}
#endif

class RuntimeTransfers final : public Transfers {
 public:
  explicit RuntimeTransfers(Stream ops) : ops_(ops) {
    streams_[kOpsQueue] = ops.handle;
    for (int queue = 1; queue <= kCopyQueues; ++queue) {
      check(
          FP8KV_RUNTIME(StreamCreateWithFlags)(&streams_[queue], FP8KV_RUNTIME(StreamNonBlocking)),
          "making a queue of copies");
    }
  }

  ~RuntimeTransfers() override {
    for (int queue = 1; queue <= kCopyQueues; ++queue) {
      static_cast<void>(FP8KV_RUNTIME(StreamSynchronize)(streams_[queue]));
      static_cast<void>(FP8KV_RUNTIME(StreamDestroy)(streams_[queue]));
    }
    for (const Event event : events_) static_cast<void>(FP8KV_RUNTIME(EventDestroy)(event));
  }

  std::shared_ptr<std::byte> allocate_pinned(size_t bytes) override {
    void* memory = nullptr;
    const std::string what = cat("allocating ", human_bytes(bytes), " of pinned host memory");
    check_given(allocate_host(&memory, bytes == 0 ? 1 : bytes), what, ops_);
    return {static_cast<std::byte*>(memory),
            [](std::byte* block) { static_cast<void>(free_host(block)); }};
  }

  void to_device(int queue, std::byte* to, const std::byte* host, size_t bytes) override {
    copy(queue, to, host, bytes, FP8KV_RUNTIME(MemcpyHostToDevice), "copying to the device");
  }

  void to_host(int queue, std::byte* host, const std::byte* from, size_t bytes) override {
    copy(queue, host, from, bytes, FP8KV_RUNTIME(MemcpyDeviceToHost), "copying from the device");
  }

  int make_mark() override {
    Event event = nullptr;
    check_given(FP8KV_RUNTIME(EventCreateWithFlags)(&event, FP8KV_RUNTIME(EventDisableTiming)),
                "making a mark", ops_);
    events_.push_back(event);
    return static_cast<int>(events_.size()) - 1;
  }

  void record(int mark, int queue) override {
    check_given(FP8KV_RUNTIME(EventRecord)(at(mark), streams_[queue]), "recording a mark", ops_);
  }

  void wait(int queue, int mark) override {
    check_given(FP8KV_RUNTIME(StreamWaitEvent)(streams_[queue], at(mark), 0), "waiting for a mark",
                ops_);
  }

  void wait_here(int mark) override {
    check_waited(FP8KV_RUNTIME(EventSynchronize)(at(mark)), "waiting for the device", ops_);
  }

 private:
  void copy(int queue, std::byte* to, const std::byte* from, size_t bytes,
            FP8KV_RUNTIME(MemcpyKind) kind, const char* what) {
    check_given(FP8KV_RUNTIME(MemcpyAsync)(to, from, bytes, kind, streams_[queue]), what, ops_);
    if (sync_after_launch()) {
      check_waited(FP8KV_RUNTIME(StreamSynchronize)(streams_[queue]), what, ops_);
    } else {
      ops_.pending->add_copy_beside();
    }
  }

  Event at(int mark) const { return events_[static_cast<size_t>(mark)]; }

  const Stream ops_;
  StreamHandle streams_[kCopyQueues + 1] = {};
  std::vector<Event> events_;
};

}  // namespace

std::unique_ptr<Transfers> make_transfers(Stream ops) {
  return std::make_unique<RuntimeTransfers>(ops);
}

}  // namespace fp8kv::FP8KV_GPU
