// A file that is read in large blocks into the caller's memory. Reads can bypass the page cache: a
// file larger than memory that is read once would push everything else out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace fp8kv {

class BlockFile {
 public:
  // Direct reads need memory of this alignment, and this many bytes of room before and after a
  // block.
  static constexpr size_t kAlignment = 4096;

  // `direct`: bypasses the page cache if the file system supports that. Throws like InputFile.
  BlockFile(std::filesystem::path path, bool direct);

  // Whether reads bypass the page cache.
  bool direct() const { return direct_; }

  // Reads `length` bytes at `offset` to some place in `buffer`, and returns that place. Throws if
  // the file ends early or cannot be read. May be called from several threads. REQUIRES `buffer`
  // aligned to kAlignment, with length + 2 * kAlignment bytes.
  std::byte* read(uint64_t offset, size_t length, std::span<std::byte> buffer) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const int> descriptor_;
  bool direct_ = false;
};

}  // namespace fp8kv
