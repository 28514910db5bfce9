// Reads files: mappings, whole texts, and parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "files/file_stamp.h"

namespace fp8kv {

// A file mapped for reading. It is unmapped when the last copy of `keep_alive` is gone. Parts that
// become unreadable read as zeros (see mapping_guard.h), so call check_unchanged() before using
// results. Throws if the path does not exist, is not a regular file or cannot be read.
class MappedFile {
 public:
  static MappedFile open(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  // The mapping lives as long as a copy of this pointer.
  std::shared_ptr<const void> keep_alive() const { return mapping_; }

  // Throws "'FILE': changed while it was read" if the bytes read may not be those of the file that
  // was opened.
  void check_unchanged() const;

 private:
  struct Mapping;

  std::filesystem::path path_;
  FileStamp stamp_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const Mapping> mapping_;
};

// Reads the whole file as text; "-" reads standard input. Throws past `max_bytes`.
std::string read_text(const std::filesystem::path& path, uint64_t max_bytes = uint64_t(1) << 32);
// Like read_text, but refuses anything except a regular file: reading a named pipe in a folder
// would wait for a writer.
std::string read_regular_text(const std::filesystem::path& path, uint64_t max_bytes = uint64_t(1)
                                                                                      << 32);

// A regular file that is read in parts. It stays open until the last copy is gone. Throws like
// MappedFile::open. Const members may be called from several threads.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);

  uint64_t size() const { return stamp_.bytes; }  // at the time of opening, like all of `stamp`
  const FileStamp& stamp() const { return stamp_; }
  // Reads `length` bytes at `offset`. Throws if the file ends early.
  std::string read(uint64_t offset, uint64_t length) const;
  // Likewise, into memory of the caller.
  void read(uint64_t offset, std::span<std::byte> into) const;

 private:
  void check_range(uint64_t offset, uint64_t length) const;

  std::filesystem::path path_;
  std::shared_ptr<const int> descriptor_;
  FileStamp stamp_;
};

// Like InputFile, for a single read.
uint64_t regular_file_size(const std::filesystem::path& path);
std::string read_range(const std::filesystem::path& path, uint64_t offset, uint64_t length);

}  // namespace fp8kv
