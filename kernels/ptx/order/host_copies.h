// Copies between pinned host memory and the device, until the host knows that they are done. A copy
// to the host arrives only then: as late as a device may let it. A source must not change before.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/ptx/order/stream_order.h"

namespace fp8kv::ptx {

class HostCopies {
 public:
  void add_pinned(const void* memory, size_t bytes);
  // Returns what is wrong with giving the memory back, or "".
  std::string release_pinned(const void* memory);

  // Call it before a copy from host memory. Memory that is not pinned is read at once. Returns what
  // is wrong, or "".
  std::string note_source(const void* from, size_t bytes, const WorkTime& time);
  // Copies to `to`: at once if this is not pinned, since the call then waits. Returns what is
  // wrong, or "".
  std::string deliver(void* to, const void* from, size_t bytes, const WorkTime& time);
  // Ends all copies that the host knows to be done. Returns what is wrong with one, or "".
  std::string arrive(const Clock& host);

 private:
  struct Pending {
    std::byte* host;
    size_t bytes;
    WorkTime time;
    size_t digest;                // of a source
    std::vector<std::byte> data;  // for the host; empty for a source
  };
  bool is_pinned(const void* memory) const;
  // Ends a copy, and returns what is wrong with it, or "".
  static std::string end(const Pending& copy);
  // Ends the copies with these bytes, which a new one at `time` has to come after.
  std::string end_before(const std::byte* host, size_t bytes, const WorkTime& time);

  std::mutex mutex_;
  std::map<const std::byte*, size_t> pinned_;
  std::list<Pending> pending_;
};

}  // namespace fp8kv::ptx
