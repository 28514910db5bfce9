// A folder that appears whole or not at all.
#pragma once

#include <filesystem>
#include <memory>

namespace fp8kv {

class Temporary;

// A directory that is filled under a temporary name (see files/output/temporary.h) and then
// renamed. `target` stays as it was until `publish` succeeds. The destructor removes what was made.
class StagedDirectory {
 public:
  // REQUIRES the parent of `target` to exist. Refuses an existing `target` unless `overwrite`.
  StagedDirectory(std::filesystem::path target, bool overwrite);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  // The temporary directory to fill.
  const std::filesystem::path& path() const;

  // Writes the folder's record (files/output/made_folder.h), syncs every file made in it (but not
  // hard links to other files) and renames it. With `overwrite`, an existing target made by this
  // program is exchanged for the new folder in one step, then removed. Throws for a target that
  // this program did not make, or if the file system cannot exchange folders.
  void publish();
  // Like publish, with another name in the same folder: for names that depend on what was written.
  // Refuses an existing `target`.
  void publish_as(const std::filesystem::path& target);

 private:
  void make_final();
  void replace_target();

  std::filesystem::path target_;
  std::unique_ptr<Temporary> temporary_;
  bool overwrite_;
};

}  // namespace fp8kv
