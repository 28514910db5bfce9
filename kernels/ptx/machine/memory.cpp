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
// Released memory that keeps its address.
constexpr uint64_t kMostReleased = uint64_t{256} << 20;

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
  Block block{bytes, std::unique_ptr<std::byte, Free>(memory),
              std::make_unique<TouchedParts>(bytes), AccessLog(bytes)};
  blocks_.emplace(reinterpret_cast<uint64_t>(memory), std::move(block));
  return memory;
}

bool GlobalMemory::release(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uint64_t>(memory));
  if (found == blocks_.end()) return false;
  in_use_ -= found->second.bytes;
  released_bytes_ += found->second.bytes;
  released_.push_back(blocks_.extract(found));
  while (released_bytes_ > kMostReleased) {
    released_bytes_ -= released_.front().mapped().bytes;
    released_.pop_front();
  }
  return true;
}

FoundMemory GlobalMemory::find(uint64_t address, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return {};
  --after;
  const Range range{after->first, after->first + after->second.bytes};
  if (!range.holds(address, bytes)) return {};
  return {range, after->second.touched.get()};
}

bool GlobalMemory::was_released(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(released_.begin(), released_.end(), [&](const Blocks::node_type& block) {
    return Range{block.key(), block.key() + block.mapped().bytes}.holds(address, 1);
  });
}

std::string GlobalMemory::note_part(Blocks::value_type& block, size_t part, bool writes,
                                    const WorkTime& time, LastingName name) {
  const std::string wrong = block.second.log.note(part, writes, time, name);
  if (wrong.empty()) return wrong;
  return cat(*name, ": ", wrong, ": byte ", part * kPartBytes, " of an allocation of ",
             block.second.bytes);
}

std::string GlobalMemory::note(Range bytes, bool writes, const WorkTime& time, LastingName name) {
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(bytes.begin);
  if (after == blocks_.begin() || bytes.begin == bytes.end) return "";
  Blocks::value_type& block = *--after;
  const size_t last = (bytes.end - 1 - block.first) / kPartBytes;
  for (size_t part = (bytes.begin - block.first) / kPartBytes; part <= last; ++part) {
    const std::string wrong = note_part(block, part, writes, time, name);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string GlobalMemory::note_touched(const WorkTime& time, LastingName name) {
  const std::lock_guard lock(mutex_);
  std::string wrong;
  for (Blocks::value_type& block : blocks_) {
    block.second.touched->take([&](size_t part, uint8_t how) {
      for (const uint8_t each : {TouchedParts::kRead, TouchedParts::kWritten}) {
        if ((how & each) == 0 || !wrong.empty()) continue;
        wrong = note_part(block, part, each == TouchedParts::kWritten, time, name);
      }
    });
  }
  return wrong;
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
