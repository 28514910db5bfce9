// Memory of the CPU backend: zeroed, aligned to cache lines, on huge pages where that pays.
#pragma once

#include <cstddef>
#include <memory>

namespace fp8kv {

// `bytes` of zeroed memory, 64-byte aligned; not null even for 0 bytes. Large blocks come straight
// from the system, untouched until used, and ask for huge pages.
// Throws a resource error that names the size.
std::shared_ptr<std::byte> allocate_zeroed(size_t bytes);

// Working memory that grows to the largest size asked for and is then reused.
class Scratch {
 public:
  // At least `count` elements of undefined content, valid until the next call.
  float* floats(size_t count);

 private:
  std::shared_ptr<std::byte> memory_;
  size_t capacity_bytes_ = 0;
};

}  // namespace fp8kv
