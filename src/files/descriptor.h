// File descriptors that close themselves. Only src/files uses them, and members in its headers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace fp8kv {

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileDescriptor(FileDescriptor&& other) : descriptor_(std::exchange(other.descriptor_, -1)) {}

  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }
  // Closes the descriptor and returns the result of close(): on NFS a failed write may show only
  // here.
  int close() { return ::close(std::exchange(descriptor_, -1)); }

 private:
  int descriptor_;
};

// All functions throw errors that name the path.
FileDescriptor open_for_reading(const std::filesystem::path& path, int more_flags = 0);
// For regular files. Throws for anything else except folders, which regular_size refuses. Never
// waits, while opening a named pipe would.
FileDescriptor open_regular(const std::filesystem::path& path);
uint64_t regular_size(const FileDescriptor& file, const std::filesystem::path& path);

}  // namespace fp8kv
