// A file that is read in large blocks into memory of the caller's, past the page cache where that
// is wished for: what is read once, and is larger than memory, would only push out the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace fp8kv {

class BlockFile {
 public:
  // Direct reads need memory of this alignment, and room for as much on either side of a block.
  static constexpr size_t kAlignment = 4096;

  // `direct`: past the page cache, where the file system can. Throws as InputFile does.
  BlockFile(std::filesystem::path path, bool direct);

  // Whether reads go past the page cache.
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
