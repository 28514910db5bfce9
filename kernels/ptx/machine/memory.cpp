#include "kernels/ptx/machine/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace fp8kv::ptx {
namespace {

constexpr size_t kAlignment = 256;  // cudaMalloc's, CUDA C++ Programming Guide 5.3.2
constexpr int kNonsense = 0xCD;
// A gap behind every block, so that two blocks never touch.
constexpr size_t kGap = 64;

}  // namespace

void GlobalMemory::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

std::byte* GlobalMemory::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > capacity_ - in_use_) return nullptr;
  const size_t whole = (bytes + kGap + kAlignment - 1) / kAlignment * kAlignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
  if (!memory) return nullptr;
  std::memset(memory, kNonsense, whole);
  in_use_ += bytes;
  Block block{bytes, std::unique_ptr<std::byte, Free>(memory)};
  blocks_.emplace(reinterpret_cast<uint64_t>(memory), std::move(block));
  return memory;
}

bool GlobalMemory::release(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uint64_t>(memory));
  if (found == blocks_.end()) return false;
  in_use_ -= found->second.bytes;
  blocks_.erase(found);
  return true;
}

Range GlobalMemory::find(uint64_t address, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return {};
  --after;
  const Range range{after->first, after->first + after->second.bytes};
  return range.holds(address, bytes) ? range : Range{};
}

uint64_t GlobalMemory::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

SharedMemory::SharedMemory(size_t bytes)
    : size_(bytes), memory_(bytes + kAlignment), words_(bytes / 4 + 1) {
  const auto at = reinterpret_cast<uint64_t>(memory_.data());
  data_ = memory_.data() + (kAlignment - at % kAlignment) % kAlignment;
}

void SharedMemory::clear() {
  std::memset(data_, kNonsense, size_);
  std::fill(words_.begin(), words_.end(), Word{});
  epoch_ = 1;
}

std::string SharedMemory::write_conflict(const Word& word, int warp) const {
  if (word.write_epoch == epoch_ && word.writer != warp) {
    return cat("writes what warp ", word.writer, " wrote since the last barrier");
  }
  if (word.read_epoch == epoch_ && word.reader != warp) {
    return "writes what another warp read since the last barrier";
  }
  return "";
}

std::string SharedMemory::note_read(uint32_t at, uint32_t bytes, int warp) {
  for (uint32_t i = at / 4; i * 4 < at + bytes; ++i) {
    Word& word = words_[i];
    const uint32_t first = i * 4 < at ? at % 4 : 0;
    const uint32_t count = std::min(4u, at + bytes - i * 4) - first;
    const uint32_t mask = ((1u << count) - 1) << first;
    if ((word.written & mask) != mask) return "reads bytes that nothing was written to";
    if (word.write_epoch == epoch_ && word.writer != warp && count == 4) {
      return cat("reads what warp ", word.writer, " wrote since the last barrier");
    }
    word.reader =
        word.read_epoch == epoch_ && word.reader != warp ? kMany : static_cast<int16_t>(warp);
    word.read_epoch = epoch_;
  }
  return "";
}

std::string SharedMemory::note_write(uint32_t at, uint32_t bytes, int warp) {
  for (uint32_t i = at / 4; i * 4 < at + bytes; ++i) {
    Word& word = words_[i];
    const uint32_t first = i * 4 < at ? at % 4 : 0;
    const uint32_t count = std::min(4u, at + bytes - i * 4) - first;
    word.written = static_cast<uint8_t>(word.written | ((1u << count) - 1) << first);
    // Two warps may write two halves of a word: writers are known only for whole words.
    if (count < 4) continue;
    if (const std::string conflict = write_conflict(word, warp); !conflict.empty()) return conflict;
    word.writer = static_cast<int16_t>(warp);
    word.write_epoch = epoch_;
    word.atomic = false;
  }
  return "";
}

std::string SharedMemory::note_atomic(uint32_t at, uint32_t bytes, int warp) {
  for (uint32_t i = at / 4; i * 4 < at + bytes; ++i) {
    Word& word = words_[i];
    if (word.written != 0xF) return "reads bytes that nothing was written to";
    if (!(word.atomic && word.write_epoch == epoch_)) {
      if (const std::string conflict = write_conflict(word, warp); !conflict.empty()) {
        return conflict;
      }
    }
    // If two warps met here, both count as writers.
    const bool met = word.atomic && word.write_epoch == epoch_ && word.writer != warp;
    word.writer = met ? kMany : static_cast<int16_t>(warp);
    word.write_epoch = epoch_;
    word.atomic = true;
  }
  return "";
}

std::string SharedMemory::note_copy(uint32_t at, uint32_t bytes, int warp) {
  const std::string conflict = note_write(at, bytes, warp);
  for (uint32_t i = at / 4; i * 4 < at + bytes; ++i) words_[i].written = 0;
  return conflict;
}

}  // namespace fp8kv::ptx
