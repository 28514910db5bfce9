// Copies that a device makes while its ops run. Ops have one queue, and copies have kCopyQueues
// queues. Work within a queue runs in order. Queues wait for each other only where they are told
// to.
#pragma once

#include <cstddef>
#include <memory>

namespace fp8kv {

// The queue of the backend's ops. Copy queues are 1 to kCopyQueues.
inline constexpr int kOpsQueue = 0;
inline constexpr int kCopyQueues = 4;

// Every member but make_mark may be called from several threads. A failure on the device throws a
// device error, at once or in a later call.
class Transfers {
 public:
  virtual ~Transfers() = default;

  // Host memory that the device copies from and to by itself, aligned to 4096 bytes, of undefined
  // content. Throws a resource error that names the size.
  virtual std::shared_ptr<std::byte> allocate_pinned(size_t bytes) = 0;

  // Begins a copy and returns. `host` is pinned. Neither side may be touched until a mark that was
  // recorded after the copy has been waited for. REQUIRES a copy queue.
  virtual void to_device(int queue, std::byte* to, const std::byte* host, size_t bytes) = 0;
  virtual void to_host(int queue, std::byte* host, const std::byte* from, size_t bytes) = 0;

  // A mark is a point in a queue; recording it again moves it.
  virtual int make_mark() = 0;
  // Records the mark: it is reached when all work that the queue has so far is done.
  virtual void record(int mark, int queue) = 0;
  // Work that the queue gets from now on starts once the mark, as recorded last, is reached. A mark
  // that was never recorded counts as reached.
  virtual void wait(int queue, int mark) = 0;
  // Blocks the calling thread until the mark is reached.
  virtual void wait_here(int mark) = 0;
};

}  // namespace fp8kv
