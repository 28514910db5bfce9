// Files as this tool uses them: read-only mappings, whole texts, and outputs that appear whole or
// not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "files/file_stamp.h"

namespace fp8kv {

class Temporary;

// A file mapped for reading, unmapped when the last copy of `keep_alive` is gone. What cannot be
// read any more is zeros (see mapping_guard.h): ask check_unchanged() before results go out.
// Throws when the path does not exist, is not a regular file or cannot be read.
class MappedFile {
 public:
  static MappedFile open(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  // Whoever holds this keeps the mapping alive.
  std::shared_ptr<const void> keep_alive() const { return mapping_; }

  // Throws "'FILE': changed while it was read" when something else may have been read than the file
  // that was opened.
  void check_unchanged() const;

 private:
  struct Mapping;

  std::filesystem::path path_;
  FileStamp stamp_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const Mapping> mapping_;
};

// The whole file as text; "-" reads standard input. Throws past `max_bytes`.
std::string read_text(const std::filesystem::path& path, uint64_t max_bytes = uint64_t(1) << 32);
// The same of a regular file, and of no other: a named pipe in a folder would be waited for.
std::string read_regular_text(const std::filesystem::path& path, uint64_t max_bytes = uint64_t(1)
                                                                                      << 32);

// A regular file that is read in parts, open until the last copy is gone. Throws as
// MappedFile::open does. Const members may be called from several threads.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);

  uint64_t size() const { return stamp_.bytes; }  // when it was opened, as is all of `stamp`
  const FileStamp& stamp() const { return stamp_; }
  // Reads `length` bytes at `offset`; throws when the file ends before.
  std::string read(uint64_t offset, uint64_t length) const;
  // The same, into memory of the caller's.
  void read(uint64_t offset, std::span<std::byte> into) const;

 private:
  void check_range(uint64_t offset, uint64_t length) const;

  std::filesystem::path path_;
  std::shared_ptr<const int> descriptor_;
  FileStamp stamp_;
};

// The same for a single part.
uint64_t regular_file_size(const std::filesystem::path& path);
std::string read_range(const std::filesystem::path& path, uint64_t offset, uint64_t length);

// Writes all of `bytes` to a new file. The caller provides atomicity and syncs.
void write_new_file(const std::filesystem::path& path, std::string_view bytes);

// Thrown when the reader of standard output has gone away, which ends the program quietly: `fp8kv
// inspect ... | head` is no failure.
struct BrokenPipe {};

// Writes all of `bytes` to standard output. Throws BrokenPipe, or a resource Error.
void write_stdout(std::string_view bytes);

// Throws where write_file_atomically would refuse `path` whatever the bytes: for asking before long
// work. "", "-" and special files pass.
void check_output_file(const std::filesystem::path& path, bool overwrite);
// What check_output_file throws for a path that is taken, and wants a way out.
Error already_exists(const std::filesystem::path& path);
// Whether two outputs would take the same place: "a.json" and "./a.json", and "-" twice. Special
// files do not: what is written to them goes on.
bool same_output(const std::filesystem::path& a, const std::filesystem::path& b);

// The bytes of a file from `begin` to before `end`.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Writes `head` and then the parts of `from`, in this order, to a new file, of which it never holds
// more than a block in memory. REQUIRES parts within the file. The caller syncs.
void write_new_file(const std::filesystem::path& path, std::string_view head,
                    const std::filesystem::path& from, std::span<const ByteRange> parts);

// The path that a symbolic link leads to, there or not; any other path as it is. An output replaces
// what a link leads to, and the link stays.
std::filesystem::path behind_links(const std::filesystem::path& path);

// Replaces `path` with `bytes` atomically: a temporary sibling, fsync, rename.
// Refuses an existing file unless `overwrite`. "-" writes to standard output, and what is a special
// file (see files/special_file.h) is written to, never replaced.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes,
                           bool overwrite);

// Renames a file, or to a free name a folder. Throws already_exists when `to` is taken; with
// `overwrite`, a file there is replaced. Syncs nothing.
void rename_into_place(const std::filesystem::path& from, const std::filesystem::path& to,
                       bool overwrite);

// A directory that is filled under a temporary name (see files/temporary.h) and then renamed.
// Until `publish` succeeds nothing is visible at `target`; the destructor removes what was made.
class StagedDirectory {
 public:
  // REQUIRES the parent of `target` to exist. Refuses an existing `target` unless `overwrite`.
  StagedDirectory(std::filesystem::path target, bool overwrite);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  // The temporary directory to fill.
  const std::filesystem::path& path() const;

  // Writes the record of the folder (files/made_folder.h), syncs everything that was made in it
  // (files with other hard links were not) and renames. With `overwrite`, an existing target that
  // this program made is exchanged for the new one in one step, then removed. Throws for a target
  // that it did not make, and where the file system cannot exchange folders.
  void publish();

 private:
  void replace_target();

  std::filesystem::path target_;
  std::unique_ptr<Temporary> temporary_;
  bool overwrite_;
};

enum class LinkMode { automatic, reflink, hard, copy };

// How a file was brought along.
enum class LinkResult { reflinked, hard_linked, copied };

// Makes `to` have the contents of the regular file `from` (symbolic links are followed).
// automatic: reflink, else hard link, else copy. Other modes throw when they are impossible.
// A reflink and a copy are readable for whom `from` is.
// Syncs nothing.
LinkResult link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to,
                        LinkMode mode);

}  // namespace fp8kv
