// A large file that replaces another one whole or not at all, written part by part.
#pragma once

#include <filesystem>
#include <string_view>

namespace fp8kv {

// Writes "PATH.new", which is replaced if a run before has left it, and removed unless commit()
// succeeds. One writer at a time: a second one is refused.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  // Syncs and renames.
  void commit();

  static std::filesystem::path temporary_of(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

}  // namespace fp8kv
