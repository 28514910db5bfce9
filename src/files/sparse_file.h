// A new file that has its full length at once, as a hole. Parts that are never written read as
// zeros, so the caller must record which parts were written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "files/descriptor.h"

namespace fp8kv {

class SparseFile {
 public:
  // Throws if the path is taken.
  SparseFile(std::filesystem::path path, uint64_t bytes);

  // REQUIRES a range within the file.
  void write(uint64_t offset, std::string_view bytes);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace fp8kv
