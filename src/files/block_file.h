// A file that is read in large blocks into the caller's memory. On request the page cache is not
// used: a file that is read only once, and is larger than memory, would push all else out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace fp8kv {

class BlockFile {
 public:
  // Reads without the page cache need memory of this alignment, and this many bytes of room before
  // and behind a block.
  static constexpr size_t kAlignment = 4096;

  // `direct`: without the page cache, where the file system can do that. Throws as InputFile does.
  BlockFile(std::filesystem::path path, bool direct);

  // Whether reads leave out the page cache.
  bool direct() const { return direct_; }

  // Reads `length` bytes at `offset` somewhere into `room`; returns where. Throws when the file
  // ends before, or cannot be read. May be called from several threads. REQUIRES `room` aligned to
  // kAlignment, of length + 2 * kAlignment bytes.
  std::byte* read(uint64_t offset, size_t length, std::span<std::byte> room) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const int> descriptor_;
  bool direct_ = false;
};

}  // namespace fp8kv
