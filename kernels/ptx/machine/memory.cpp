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
    : size_(bytes), memory_(bytes + kAlignment, std::byte{kNonsense}), words_(bytes / 4 + 1) {
  const auto at = reinterpret_cast<uint64_t>(memory_.data());
  data_ = memory_.data() + (kAlignment - at % kAlignment) % kAlignment;
}

void SharedMemory::clear() {
  for (Word& word : words_) word.written = 0;
  ++epoch_;  // so that nobody has used a word yet
}

std::string SharedMemory::write_conflict(const Word& word, int warp) const {
  if (written_by_other(word, warp)) {
    return cat("writes what warp ", word.writer, " wrote since the last barrier");
  }
  if (read_by_other(word, warp)) return "writes what another warp read since the last barrier";
  return "";
}

bool SharedMemory::note_atomic(uint32_t at, uint32_t bytes, int warp) {
  for (Word *word = &words_[at / 4], *end = word + words_of(bytes); word != end; ++word) {
    if (word->written != 0xF) return false;
    const bool after_atomic = word->atomic && word->write_epoch == epoch_;
    if (!after_atomic && (written_by_other(*word, warp) || read_by_other(*word, warp))) {
      return false;
    }
    // If two warps met here, both count as writers.
    const bool met = after_atomic && word->writer != warp;
    word->writer = met ? kMany : static_cast<int16_t>(warp);
    word->write_epoch = epoch_;
    word->atomic = true;
  }
  return true;
}

bool SharedMemory::note_copy(uint32_t at, uint32_t bytes, int warp) {
  if (!note_write(at, bytes, warp)) return false;
  for (uint32_t i = 0; i < words_of(bytes); ++i) words_[at / 4 + i].written = 0;
  return true;
}

std::string SharedMemory::why_not_read(uint32_t at, uint32_t bytes, int warp) const {
  const uint8_t mask = mask_of(at, bytes);
  for (uint32_t i = 0; i < words_of(bytes); ++i) {
    const Word& word = words_[at / 4 + i];
    if ((word.written & mask) != mask) return "reads bytes that nothing was written to";
    if (bytes >= 4 && written_by_other(word, warp)) {
      return cat("reads what warp ", word.writer, " wrote since the last barrier");
    }
  }
  return "";
}

std::string SharedMemory::why_not_write(uint32_t at, uint32_t bytes, int warp) const {
  for (uint32_t i = 0; i < words_of(bytes); ++i) {
    std::string conflict = write_conflict(words_[at / 4 + i], warp);
    if (!conflict.empty()) return conflict;
  }
  return "";
}

std::string SharedMemory::why_not_atomic(uint32_t at, uint32_t bytes, int warp) const {
  for (uint32_t i = 0; i < words_of(bytes); ++i) {
    const Word& word = words_[at / 4 + i];
    if (word.written != 0xF) return "reads bytes that nothing was written to";
    if (word.atomic && word.write_epoch == epoch_) continue;
    std::string conflict = write_conflict(word, warp);
    if (!conflict.empty()) return conflict;
  }
  return "";
}

}  // namespace fp8kv::ptx
