// Reads numpy's .npz format: a zip archive of .npy arrays, stored or deflated, with or without
// zip64. It reads the directory and then single arrays, never the whole archive. It is not a
// general zip reader.
//
// Archives are not trusted. Every offset is checked against the file, and the true size of a member
// against the directory. No member above `kLargestNpzArray` is unpacked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/npy.h"

namespace fp8kv {

inline constexpr uint64_t kLargestNpzArray = uint64_t(1) << 20;

class Npz {
 public:
  // Reads `length` bytes at `offset`. It is called only for ranges within the file.
  using Reader = std::function<std::string(uint64_t offset, uint64_t length)>;

  static Npz open(const std::filesystem::path& path);
  // Messages start with `source` as given.
  Npz(uint64_t size, Reader read, std::string source);

  // The names of the arrays in order, without ".npy".
  std::vector<std::string> names() const;
  // Throws if there is no such array, if it is damaged, or if it is larger than kLargestNpzArray.
  NpyArray read(const std::string& name) const;

 private:
  struct Member {
    bool encrypted = false;
    uint16_t method = 0;
    uint32_t crc = 0;
    uint64_t packed = 0;
    uint64_t unpacked = 0;
    uint64_t offset = 0;  // of the local header
  };
  struct Directory {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t entries = 0;
  };

  Directory find_directory() const;
  Directory read_zip64_directory(const std::string& tail, uint64_t tail_at, size_t end_at) const;
  void read_directory(const Directory& directory);
  std::string unpack(const std::string& name, const Member& member) const;

  uint64_t size_;
  Reader read_;
  std::string source_;
  uint64_t data_end_ = 0;  // where the directory begins
  std::map<std::string, Member> members_;
};

}  // namespace fp8kv
