// A new file of its full length, most of which is a hole. What is not written reads as zeros:
// whoever makes one keeps a record of what is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "files/descriptor.h"

namespace fp8kv {

class SparseFile {
 public:
  // Throws where the path is taken.
  SparseFile(std::filesystem::path path, uint64_t bytes);

  // REQUIRES a part within the file.
  void write(uint64_t offset, std::string_view bytes);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace fp8kv
