// The memories of the emulated device, with the state of every byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/ptx/order/access_log.h"

namespace fp8kv::ptx {

// Addresses from `begin` up to `end`.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= begin && address <= end && bytes <= end - address;
  }
};

// An allocation, as kernels find it.
struct FoundMemory {
  Range range;                      // empty: there is none
  TouchedParts* touched = nullptr;  // null for constants
};

// Allocations of device memory. Addresses are those of the host's memory behind it. Memory that was
// given back keeps its address for a while, so that later uses of it are found.
class GlobalMemory {
 public:
  explicit GlobalMemory(uint64_t capacity) : capacity_(capacity) {}

  // Returns memory filled with nonsense; null if there is no room.
  std::byte* allocate(size_t bytes);
  // Returns false if there is no such allocation.
  bool release(void* memory);
  // The allocation that holds all of these bytes; an empty range if none does.
  FoundMemory find(uint64_t address, uint64_t bytes) const;
  // Whether these bytes were given back not long ago.
  bool was_released(uint64_t address) const;
  // Each notes uses by a piece of work, and returns what is wrong with one, or "": of these bytes,
  // and of what a kernel has touched. `name` is the work's.
  std::string note(Range bytes, bool writes, const WorkTime& time, LastingName name);
  std::string note_touched(const WorkTime& time, LastingName name);
  uint64_t capacity() const { return capacity_; }
  uint64_t in_use() const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  struct Block {
    uint64_t bytes;
    std::unique_ptr<std::byte, Free> memory;
    std::unique_ptr<TouchedParts> touched;
    AccessLog log;
  };
  using Blocks = std::map<uint64_t, Block>;  // by address
  std::string note_part(Blocks::value_type& block, size_t part, bool writes, const WorkTime& time,
                        LastingName name);

  mutable std::mutex mutex_;
  uint64_t capacity_;
  uint64_t in_use_ = 0;
  Blocks blocks_;
  std::deque<Blocks::node_type> released_;
  uint64_t released_bytes_ = 0;
};

// A block's shared memory. Remembers for each word which of its bytes were written, and which warps
// used it since the last barrier.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes);

  // Prepares for another block: nothing is written yet.
  void clear();
  // Call it when all warps have met.
  void pass_barrier() { ++epoch_; }
  size_t size() const { return size_; }
  std::byte* data() { return data_; }

  // Each notes an access, and returns whether a device allows it; why_not_read() and so on say why
  // it does not. REQUIRES bytes within the memory: 1, 2, 4, 8 or 16, at a multiple of as many.
  bool note_read(uint32_t at, uint32_t bytes, int warp);
  bool note_write(uint32_t at, uint32_t bytes, int warp);
  // For an atomic operation, which conflicts with no other atomic operation.
  bool note_atomic(uint32_t at, uint32_t bytes, int warp);
  // For a requested copy: its bytes are not there until it has arrived.
  bool note_copy(uint32_t at, uint32_t bytes, int warp);

  std::string why_not_read(uint32_t at, uint32_t bytes, int warp) const;
  std::string why_not_write(uint32_t at, uint32_t bytes, int warp) const;
  std::string why_not_atomic(uint32_t at, uint32_t bytes, int warp) const;

 private:
  // Four bytes: which of them are written, and which warps last used them.
  struct Word {
    uint32_t write_epoch = 0;
    uint32_t read_epoch = 0;
    int16_t writer = -1;
    int16_t reader = -1;  // kMany for more than one
    uint8_t written = 0;  // a bit for each byte
    bool atomic = false;  // the last write was by an atomic operation
  };
  static constexpr int16_t kMany = -2;

  // The bits of an access in each of its words.
  static uint8_t mask_of(uint32_t at, uint32_t bytes) {
    return bytes >= 4 ? 0xF : static_cast<uint8_t>(((1u << bytes) - 1) << at % 4);
  }
  static uint32_t words_of(uint32_t bytes) { return (bytes + 3) / 4; }
  bool written_by_other(const Word& word, int warp) const {
    return word.write_epoch == epoch_ && word.writer != warp;
  }
  bool read_by_other(const Word& word, int warp) const {
    return word.read_epoch == epoch_ && word.reader != warp;
  }
  std::string write_conflict(const Word& word, int warp) const;

  size_t size_;
  std::vector<std::byte> memory_;
  std::byte* data_;
  std::vector<Word> words_;
  uint32_t epoch_ = 1;
};

inline bool SharedMemory::note_read(uint32_t at, uint32_t bytes, int warp) {
  const uint8_t mask = mask_of(at, bytes);
  for (Word *word = &words_[at / 4], *end = word + words_of(bytes); word != end; ++word) {
    if ((word->written & mask) != mask) return false;
    // Two warps may write two halves of a word: writers are known only for whole words.
    if (bytes >= 4 && written_by_other(*word, warp)) return false;
    word->reader = read_by_other(*word, warp) ? kMany : static_cast<int16_t>(warp);
    word->read_epoch = epoch_;
  }
  return true;
}

inline bool SharedMemory::note_write(uint32_t at, uint32_t bytes, int warp) {
  const uint8_t mask = mask_of(at, bytes);
  for (Word *word = &words_[at / 4], *end = word + words_of(bytes); word != end; ++word) {
    word->written |= mask;
    if (bytes < 4) return true;
    if (written_by_other(*word, warp) || read_by_other(*word, warp)) return false;
    word->writer = static_cast<int16_t>(warp);
    word->write_epoch = epoch_;
    word->atomic = false;
  }
  return true;
}

}  // namespace fp8kv::ptx
