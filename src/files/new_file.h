// A file that is written in parts, in any order and from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace fp8kv {

class NewFile {
 public:
  // Throws where `path` is there already, and where a disk has no room for `bytes` (as far as its
  // file system can say that before they are written). `shown` stands in messages.
  NewFile(std::filesystem::path path, std::filesystem::path shown, uint64_t bytes);

  // May be called from several threads, also an interrupt's safe point.
  void write(uint64_t offset, std::span<const std::byte> bytes) const;
  // Asks the system to bring to the disk what was written to this part, without waiting for it:
  // a sync at the end then has little left to do.
  void begin_sync(uint64_t offset, uint64_t length) const;
  // Waits until all of it is on the disk.
  void sync() const;
  // Throws where the system has an error left to tell.
  void close();

 private:
  struct Descriptor;

  std::filesystem::path shown_;
  std::shared_ptr<Descriptor> descriptor_;
};

}  // namespace fp8kv
