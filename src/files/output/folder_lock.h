// A lock on a folder, for processes that change its entries. It changes nothing in the folder.
#pragma once

#include <filesystem>

#include "files/descriptor.h"

namespace fp8kv {

// Waits until no other process holds the lock, and holds it for its lifetime. Holds nothing where
// the file system has no locks, or if the folder cannot be opened. Interrupts end the wait.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  FileDescriptor descriptor_;
};

}  // namespace fp8kv
