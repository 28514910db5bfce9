// File descriptors that close themselves. Internal to src/files, and to what its
// headers hold.
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
  // Closes and reports what close() reports: on NFS a write can fail only here.
  int close() { return ::close(std::exchange(descriptor_, -1)); }

 private:
  int descriptor_;
};

// All throw errors that name the path.
FileDescriptor open_for_reading(const std::filesystem::path& path, int more_flags = 0);
// For regular files: throws for anything else but folders, which regular_size refuses. Never waits,
// as opening a named pipe would.
FileDescriptor open_regular(const std::filesystem::path& path);
uint64_t regular_size(const FileDescriptor& file, const std::filesystem::path& path);

}  // namespace fp8kv
