// What happens when a mapped file cannot be read any more, because it was cut short or its disk
// fails: the system then sends SIGBUS to whoever touches the mapping, which ends the program
// without a word. A guarded mapping reads as zeros from there on instead, and remembers it, so that
// whoever computed from it can throw.
#pragma once

#include <cstddef>

namespace fp8kv {

// REQUIRES a mapping that outlives it. Of more than 4,096 at a time, the later ones have no guard.
class MappingGuard {
 public:
  MappingGuard(const void* address, size_t bytes);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

  // Whether some of it has read as zeros.
  bool faulted() const;

 private:
  size_t slot_;
};

}  // namespace fp8kv
