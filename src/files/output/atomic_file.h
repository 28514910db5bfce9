// A large file, written part by part, that replaces another one whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

#include "files/output/temporary.h"

namespace fp8kv {

// Writes a temporary file beside PATH, and removes it unless commit() succeeds. Only one writer at
// a time: a second one is refused.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);

  void write(std::string_view bytes);
  // Syncs the file and renames it to PATH.
  void commit();

 private:
  std::filesystem::path path_;
  Temporary temporary_;
};

}  // namespace fp8kv
