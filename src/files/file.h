// File access: read-only mappings, whole texts, and outputs that appear whole or not at all.
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

// A file mapped for reading. It is unmapped when the last copy of `keep_alive` is gone. Parts that
// become unreadable read as zeros (see mapping_guard.h), so call check_unchanged() before using
// results. Throws if the path does not exist, is not a regular file or cannot be read.
class MappedFile {
 public:
  static MappedFile open(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  // The mapping lives as long as a copy of this pointer.
  std::shared_ptr<const void> keep_alive() const { return mapping_; }

  // Throws "'FILE': changed while it was read" if the bytes read may not be those of the file that
  // was opened.
  void check_unchanged() const;

 private:
  struct Mapping;

  std::filesystem::path path_;
  FileStamp stamp_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const Mapping> mapping_;
};

// Reads the whole file as text; "-" reads standard input. Throws past `max_bytes`.
std::string read_text(const std::filesystem::path& path, uint64_t max_bytes = uint64_t(1) << 32);
// Like read_text, but refuses anything except a regular file: reading a named pipe in a folder
// would wait for a writer.
std::string read_regular_text(const std::filesystem::path& path, uint64_t max_bytes = uint64_t(1)
                                                                                      << 32);

// A regular file that is read in parts. It stays open until the last copy is gone. Throws like
// MappedFile::open. Const members may be called from several threads.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);

  uint64_t size() const { return stamp_.bytes; }  // at the time of opening, like all of `stamp`
  const FileStamp& stamp() const { return stamp_; }
  // Reads `length` bytes at `offset`. Throws if the file ends early.
  std::string read(uint64_t offset, uint64_t length) const;
  // Likewise, into memory of the caller.
  void read(uint64_t offset, std::span<std::byte> into) const;

 private:
  void check_range(uint64_t offset, uint64_t length) const;

  std::filesystem::path path_;
  std::shared_ptr<const int> descriptor_;
  FileStamp stamp_;
};

// Like InputFile, for a single read.
uint64_t regular_file_size(const std::filesystem::path& path);
std::string read_range(const std::filesystem::path& path, uint64_t offset, uint64_t length);

// Writes all of `bytes` to a new file. The caller must make it atomic and sync it.
void write_new_file(const std::filesystem::path& path, std::string_view bytes);

// Thrown when the reader of standard output has gone away. The program then ends quietly, because
// `fp8kv inspect ... | head` is not a failure.
struct BrokenPipe {};

// Writes all of `bytes` to standard output. Throws BrokenPipe, or a resource Error.
void write_stdout(std::string_view bytes);

// Throws if write_file_atomically would refuse `path` for any bytes. Call it before long work. "",
// "-" and special files pass.
void check_output_file(const std::filesystem::path& path, bool overwrite);
// The error of check_output_file for an existing path. It still wants a remedy.
Error already_exists(const std::filesystem::path& path);
// Whether two outputs would be the same file: "a.json" and "./a.json", or "-" twice. Special files
// never collide, since writing to them continues.
bool same_output(const std::filesystem::path& a, const std::filesystem::path& b);

// The bytes of a file from `begin` up to, but not including, `end`.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Writes `head`, then the given parts of `from` in order, to a new file. Holds at most one block in
// memory. REQUIRES parts within the file. The caller syncs.
void write_new_file(const std::filesystem::path& path, std::string_view head,
                    const std::filesystem::path& from, std::span<const ByteRange> parts);

// The path that a symbolic link leads to, even if nothing is there; any other path unchanged. An
// output replaces the target of a link, and the link stays.
std::filesystem::path behind_links(const std::filesystem::path& path);

// Replaces `path` with `bytes` atomically: writes a temporary sibling, syncs and renames it.
// Refuses an existing file unless `overwrite`. "-" writes to standard output. A special file (see
// files/special_file.h) is written to, never replaced.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes,
                           bool overwrite);

// Renames a file, or renames a folder to a free name. Throws already_exists if `to` is taken; with
// `overwrite`, a file there is replaced. Does not sync.
void rename_into_place(const std::filesystem::path& from, const std::filesystem::path& to,
                       bool overwrite);

// A directory that is filled under a temporary name (see files/temporary.h) and then renamed.
// `target` stays as it was until `publish` succeeds. The destructor removes what was made.
class StagedDirectory {
 public:
  // REQUIRES the parent of `target` to exist. Refuses an existing `target` unless `overwrite`.
  StagedDirectory(std::filesystem::path target, bool overwrite);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  // The temporary directory to fill.
  const std::filesystem::path& path() const;

  // Writes the folder's record (files/made_folder.h), syncs every file made in it (but not hard
  // links to other files) and renames it. With `overwrite`, an existing target made by this program
  // is exchanged for the new folder in one step, then removed. Throws for a target that this
  // program did not make, or if the file system cannot exchange folders.
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

enum class LinkMode { automatic, reflink, hard, copy };

// How link_or_copy made the file.
enum class LinkResult { reflinked, hard_linked, copied };

// Makes `to` have the contents of the regular file `from`, following symbolic links. automatic:
// tries a reflink, then a hard link, then a copy. The other modes throw if they are impossible.
// Reflinks and copies are readable by everyone who can read `from`. Does not sync.
LinkResult link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to,
                        LinkMode mode);

}  // namespace fp8kv
