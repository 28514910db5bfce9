// The temporary file or folder that becomes an output: "OUT.fp8kv-tmp-PID" beside OUT, locked while
// it is written. A killed run leaves one behind. The program reports it but never removes it, since
// a name and an old lock do not prove who filled it.
#pragma once

#include <filesystem>
#include <vector>

#include "files/descriptor.h"

namespace fp8kv {

// A temporary that its destructor removes unless keep() was called.
class Temporary {
 public:
  // Makes an empty, locked temporary. Throws, naming `target`, if that fails.
  static Temporary file(const std::filesystem::path& target);
  static Temporary folder(const std::filesystem::path& target);
  ~Temporary();
  Temporary(Temporary&& other) = default;

  const std::filesystem::path& path() const { return path_; }
  const FileDescriptor& descriptor() const { return descriptor_; }  // of a file: for writing
  // Call it after the rename to the output's name. The destructor then removes nothing.
  void keep() { kept_ = true; }

 private:
  Temporary(std::filesystem::path path, FileDescriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path path_;
  FileDescriptor descriptor_;
  bool kept_ = false;
};

// A path with the name of a temporary.
struct Leftover {
  std::filesystem::path path;
  bool in_use = false;  // another process on this machine holds its lock
};

// Lists the temporaries of `target` that lie beside it, sorted by name. Changes nothing.
std::vector<Leftover> find_leftovers(const std::filesystem::path& target);

}  // namespace fp8kv
