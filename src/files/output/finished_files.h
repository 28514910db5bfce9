// Keeps the finished files of an output in a folder beside it, so that the same command can resume
// after it was stopped.
#pragma once

#include <concepts>
#include <filesystem>
#include <span>
#include <string>

#include "base/error.h"
#include "files/descriptor.h"

namespace fp8kv {

// The state of a file from an earlier run.
enum class Kept { absent, damaged, whole };

class FinishedFiles {
 public:
  // The folder that belongs to an output.
  static std::filesystem::path path_for(const std::filesystem::path& out);

  // Makes the folder, or takes the one that an earlier run left. `identity` has everything that
  // decides the bits of the files. Throws if the folder has another identity, or if another run
  // uses it.
  FinishedFiles(const std::filesystem::path& out, const std::string& identity);

  // Whether the file exists with all its `bytes` and still has the SHA-256 from when it was
  // finished. Reads the whole file.
  Kept has(const std::string& file, uint64_t bytes) const;
  // `unfinished` gives the path to write a file to. `finish` then marks it as finished: it syncs
  // the file, stores its SHA-256 beside it and renames it.
  std::filesystem::path unfinished(const std::string& file) const;
  void finish(const std::string& file) const;
  // Puts a finished file at `to`: by a hard link if the file system supports that, else by a
  // rename.
  void take(const std::string& file, const std::filesystem::path& to) const;
  // Removes these files and the folder. Call it once the output exists. Throws if another file is
  // in the folder, and keeps that file.
  void remove(std::span<const std::string> files) const;

  const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
  FileDescriptor lock_;
};

// Runs `work`. If it is interrupted, the error tells where `what` is kept: "finished shards".
template <std::invocable Work>
void keeping(const FinishedFiles& finished, const char* what, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::interrupted) throw;
    throw Error(cat("interrupted, ", what, " kept in ", quote(finished.path().string())),
                "the same command goes on from there", ErrorKind::interrupted);
  }
}

}  // namespace fp8kv
