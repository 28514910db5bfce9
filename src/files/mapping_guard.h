// Guards against mapped files that become unreadable, because they were truncated or the disk
// fails. The system then sends SIGBUS to the thread that touches the mapping, which would end the
// program without a message. A guarded mapping reads as zeros from there on and remembers it, so
// that callers can throw.
#pragma once

#include <cstddef>

namespace fp8kv {

// Guards a mapping. REQUIRES that the mapping outlives the guard. At most 4,096 guards work at a
// time; further ones have no effect.
class MappingGuard {
 public:
  MappingGuard(const void* address, size_t bytes);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

  // Whether any part of the mapping has read as zeros.
  bool faulted() const;

 private:
  size_t slot_;
};

}  // namespace fp8kv
