// The temporary file or folder that becomes an output: "OUT.fp8kv-tmp-PID" beside OUT, locked while
// it is written. A killed run leaves one behind. It is reported and never removed, since a name and
// an old lock prove nothing about who filled it.
#pragma once

#include <filesystem>
#include <vector>

#include "files/descriptor.h"

namespace fp8kv {

// A temporary that is removed at the end unless it was kept.
class Temporary {
 public:
  // Empty and locked. Throws, naming `target`, where it cannot be made.
  static Temporary file(const std::filesystem::path& target);
  static Temporary folder(const std::filesystem::path& target);
  ~Temporary();
  Temporary(Temporary&& other) = default;

  const std::filesystem::path& path() const { return path_; }
  const FileDescriptor& descriptor() const { return descriptor_; }  // of a file: to write to
  // Call it after the rename to the output's name: the destructor then removes nothing.
  void keep() { kept_ = true; }

 private:
  Temporary(std::filesystem::path path, FileDescriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path path_;
  FileDescriptor descriptor_;
  bool kept_ = false;
};

// A path that has the name of a temporary.
struct Leftover {
  std::filesystem::path path;
  bool in_use = false;  // another process of this machine holds its lock
};

// Lists the temporaries of `target` that lie beside it, sorted by name. Changes nothing.
std::vector<Leftover> find_leftovers(const std::filesystem::path& target);

}  // namespace fp8kv
