// A large file that replaces another one whole or not at all, written part by part.
#pragma once

#include <filesystem>
#include <string_view>

#include "files/temporary.h"

namespace fp8kv {

// Writes a temporary beside PATH, removed unless commit() succeeds; what killed runs have left is
// removed first. One writer at a time: a second one is refused.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);

  void write(std::string_view bytes);
  // Syncs and renames.
  void commit();

 private:
  std::filesystem::path path_;
  Temporary temporary_;
};

}  // namespace fp8kv
