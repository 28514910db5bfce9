// Files of an output that are done, in a folder beside it, so that the same command can go on from
// there after it was stopped.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "files/descriptor.h"

namespace fp8kv {

// The state of a file that an earlier run finished.
enum class Kept { absent, damaged, whole };

class FinishedFiles {
 public:
  // The folder for an output.
  static std::filesystem::path path_for(const std::filesystem::path& out);

  // Makes the folder, or takes what an earlier run has left. `identity`: everything that decides
  // the bits of the files. Throws when what is there is of another identity, or when another run
  // uses it.
  FinishedFiles(const std::filesystem::path& out, const std::string& identity);

  // Whether the file is there with all its `bytes`, and they have the SHA-256 of when it was
  // finished. Reads all of it.
  Kept has(const std::string& file, uint64_t bytes) const;
  // Where to write it, and, once it is there, what makes it one that is finished: it is brought to
  // the disk first, with its SHA-256 beside it.
  std::filesystem::path unfinished(const std::string& file) const;
  void finish(const std::string& file) const;
  // Brings a finished one to `to`, as a second name where the file system has these.
  void take(const std::string& file, const std::filesystem::path& to) const;
  // Once the output is there: removes these files and the folder. Throws when another file lies
  // there, which stays.
  void remove(std::span<const std::string> files) const;

  const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
  FileDescriptor lock_;
};

}  // namespace fp8kv
