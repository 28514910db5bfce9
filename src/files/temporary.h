// What an output is while it is made: a file or folder "OUT.tmp-PID" beside it, locked as long as
// somebody writes it. A run that is killed leaves one, which the next one removes.
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
  // What is at path() now has another owner, or no more is there.
  void keep() { kept_ = true; }

 private:
  Temporary(std::filesystem::path path, FileDescriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path path_;
  FileDescriptor descriptor_;
  bool kept_ = false;
};

struct Leftover {
  enum class State {
    removed,
    in_use,  // of a run that goes on
    unsure   // not removed: locks of other machines may not be seen here, or it is another user's
  };
  std::filesystem::path path;
  State state = State::removed;
};

// Removes the temporaries of `target` that nobody writes any more; says what there was, by name.
std::vector<Leftover> sweep_temporaries(const std::filesystem::path& target);

}  // namespace fp8kv
