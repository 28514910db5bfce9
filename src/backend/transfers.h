// Copies that a device makes while its ops run. Ops have a queue, and there are kCopyQueues queues
// for copies. Work within a queue runs in order; different queues wait for each other only where
// they are told to.
#pragma once

#include <cstddef>
#include <memory>

namespace fp8kv {

// The queue of the backend's ops. Copy queues are 1 to kCopyQueues.
inline constexpr int kOpsQueue = 0;
inline constexpr int kCopyQueues = 4;

// Every member but make_mark may be called from several threads. What fails on a device throws a
// device error, there or at a later call.
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
  // What the queue is given from now on starts when the mark, as recorded last, has been reached. A
  // mark that was never recorded counts as reached.
  virtual void wait(int queue, int mark) = 0;
  // The same for the thread that calls.
  virtual void wait_here(int mark) = 0;
};

}  // namespace fp8kv
