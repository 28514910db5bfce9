#include "backend/cpu/memory/cpu_memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#include "base/error.h"
#include "base/text.h"

namespace fp8kv {
namespace {

constexpr size_t kCacheLine = 64;
// The huge page of x86-64 and of aarch64 with 4 KiB pages.
constexpr size_t kHugePage = size_t{2} << 20;

[[noreturn]] void fail_allocation(size_t bytes) {
  throw Error::out_of_memory(cat("cannot allocate ", human_bytes(bytes), " of memory"));
}

std::shared_ptr<std::byte> map_zeroed(size_t bytes) {
  if (bytes > SIZE_MAX - 2 * kHugePage) fail_allocation(bytes);
  // One huge page more than asked for, so that the block can start on a boundary.
  const size_t mapped = bytes + kHugePage;
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) fail_allocation(bytes);
  const auto address = reinterpret_cast<uintptr_t>(base);
  const size_t skip = (kHugePage - address % kHugePage) % kHugePage;
  std::byte* start = static_cast<std::byte*>(base) + skip;
  madvise(start, bytes, MADV_HUGEPAGE);  // a wish: the block works without
  return {start, [base, mapped](std::byte*) { munmap(base, mapped); }};
}

}  // namespace

std::shared_ptr<std::byte> allocate_zeroed(size_t bytes) {
  if (bytes >= 2 * kHugePage) return map_zeroed(bytes);
  void* memory = nullptr;
  // The exact size, so that AddressSanitizer sees a write past the end.
  if (posix_memalign(&memory, kCacheLine, bytes == 0 ? 1 : bytes) != 0) fail_allocation(bytes);
  std::memset(memory, 0, bytes);
  return {static_cast<std::byte*>(memory), [](std::byte* block) { std::free(block); }};
}

float* Scratch::floats(size_t count) {
  const size_t bytes = count * sizeof(float);
  if (bytes > capacity_bytes_) {
    memory_ = nullptr;
    capacity_bytes_ = 0;
    memory_ = allocate_zeroed(bytes);
    capacity_bytes_ = bytes;
  }
  return reinterpret_cast<float*>(memory_.get());
}

}  // namespace fp8kv
