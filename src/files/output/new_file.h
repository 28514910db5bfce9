// A new file that several threads write in parts, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace fp8kv {

class NewFile {
 public:
  // Throws if `path` exists, or if the disk has no room for `bytes` (on file systems that can tell
  // before the bytes are written). `shown` is the path for messages.
  NewFile(std::filesystem::path path, std::filesystem::path shown, uint64_t bytes);

  // May be called from several threads. Interrupts take effect here.
  void write(uint64_t offset, std::span<const std::byte> bytes) const;
  // Asks the system to start writing this part to the disk, without waiting for it. A sync at the
  // end then has little left to do.
  void begin_sync(uint64_t offset, uint64_t length) const;
  // Waits until the whole file is on the disk.
  void sync() const;
  // Closes the file. Throws if the system reports a late error.
  void close();

 private:
  struct Descriptor;

  std::filesystem::path shown_;
  std::shared_ptr<Descriptor> descriptor_;
};

}  // namespace fp8kv
