#include "kernels/sim/sim_arena.h"

#include <cstring>

#if defined(FP8KV_ASAN)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (void)0
#endif

#include "base/error.h"

namespace fp8kv::sim {
namespace {

constexpr size_t kRedzoneBytes = 64;
constexpr size_t kMaxPieces = 64;

size_t in_sixteens(size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

}  // namespace

void Arena::begin_block(size_t bytes) {
  launched_ = bytes;
  const size_t needed = bytes + (kMaxPieces + 1) * (kRedzoneBytes + 16);
#if defined(FP8KV_TSAN)
  // Blocks share nothing: with memory of their own, they cannot race with each other.
  if (memory_) old_.push_back(std::move(memory_));
#endif
  if (!memory_ || needed > bytes_) {
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(128, (needed + 127) / 128 * 128)));
    bytes_ = needed;
  }
  ASAN_UNPOISON_MEMORY_REGION(memory_.get(), needed);
  std::memset(memory_.get(), 0xff, needed);
  ASAN_POISON_MEMORY_REGION(memory_.get(), needed);
  end_ = kRedzoneBytes;
  taken_ = 0;
  pieces_.clear();
}

std::byte* Arena::take(size_t index, size_t bytes, int thread) {
  if (index == pieces_.size()) {
    taken_ += in_sixteens(bytes);
    if (taken_ > launched_ || index == kMaxPieces) {
      throw ArenaFault{cat("takes ", taken_, " bytes of shared memory, launched with ", launched_)};
    }
    pieces_.push_back({end_, bytes});
    end_ += in_sixteens(bytes) + kRedzoneBytes;
    ASAN_UNPOISON_MEMORY_REGION(memory_.get() + pieces_.back().offset, bytes);
  }
  if (pieces_[index].bytes != bytes) {
    throw ArenaFault{cat("thread ", thread, " takes ", bytes,
                         " bytes of shared memory where another took ", pieces_[index].bytes)};
  }
  return memory_.get() + pieces_[index].offset;
}

// Finds at the end of a block what AddressSanitizer would have found at once.
void Arena::end_block() const {
#if !defined(FP8KV_ASAN)
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const size_t end = pieces_[i].offset + pieces_[i].bytes;
    const size_t next = i + 1 < pieces_.size() ? pieces_[i + 1].offset : end_;
    for (size_t at = end; at < next; ++at) {
      if (memory_.get()[at] == std::byte{0xff}) continue;
      throw ArenaFault{cat("byte ", at - pieces_[i].offset, " of a piece of ", pieces_[i].bytes,
                           " bytes of shared memory was written")};
    }
  }
#endif
}

}  // namespace fp8kv::sim
