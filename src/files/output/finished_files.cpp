#include "files/output/finished_files.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/shell.h"
#include "files/descriptor.h"
#include "files/file.h"
#include "files/output/made_folder.h"
#include "files/output/temporary.h"
#include "files/output/write_file.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr const char* kIdentity = "fp8kv-resume.json";
constexpr const char* kUnfinished = ".unfinished";
constexpr const char* kDigest = ".sha256";
constexpr uint64_t kPieceBytes = uint64_t(1) << 20;

// The folder appears whole: an unfinished one keeps the name of a temporary.
void make_folder(const fs::path& folder, const std::string& identity) {
  Temporary made = Temporary::folder(folder);
  const fs::path file = made.path() / kIdentity;
  write_new_file(file, identity);
  if (::fsync(open_for_reading(file).get()) != 0 && errno != EINVAL) {
    fail_system(file.string(), "sync", errno);
  }
  rename_into_place(made.path(), folder, false);
  made.keep();
}

// Opens and locks the folder, and makes it if there is none.
FileDescriptor locked(const fs::path& folder, const std::string& identity) {
  // A run killed while it removes the folder leaves it empty. rmdir removes an empty folder only.
  ::rmdir(folder.c_str());
  std::error_code ignored;
  if (fs::symlink_status(folder, ignored).type() == fs::file_type::not_found) {
    make_folder(folder, identity);
  }
  FileDescriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0) fail_system(folder.string(), "open", errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw Error(cat(quote(folder.string()), ": another run is writing there now"),
                "wait for it, or name another output");
  }
  return lock;
}

void unlink_if_there(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_system(path.string(), "remove", errno);
}

std::string digest_of(const fs::path& path) {
  const InputFile file(path);
  Sha256 digest;
  for (uint64_t at = 0; at < file.size(); at += kPieceBytes) {
    check_interrupt();
    digest.add(file.read(at, std::min(kPieceBytes, file.size() - at)));
  }
  return digest.hex() + "\n";
}

}  // namespace

fs::path FinishedFiles::path_for(const fs::path& out) {
  const fs::path named = out.filename().empty() ? out.parent_path() : out;
  return named.string() + ".partial";
}

FinishedFiles::FinishedFiles(const fs::path& out, const std::string& identity)
    : folder_(path_for(out)), lock_(locked(folder_, identity)) {
  const fs::path file = folder_ / kIdentity;
  if (!fs::exists(file)) {
    throw Error(cat(quote(folder_.string()), ": is not from an earlier run with --resume"),
                "move it away: that is where files are kept that are done");
  }
  if (read_regular_text(file) != identity) {
    throw Error(cat(quote(folder_.string()),
                    ": is of a run with another model, other options or another version"),
                cat("run that again to go on, or remove it: rm -r ", shell_path(folder_.string())));
  }
}

Kept FinishedFiles::has(const std::string& file, uint64_t bytes) const {
  const fs::path path = folder_ / file, digest = folder_ / (file + kDigest);
  if (!fs::exists(path)) return Kept::absent;
  if (!fs::exists(digest) || fs::file_size(path) != bytes) return Kept::damaged;
  return read_regular_text(digest) == digest_of(path) ? Kept::whole : Kept::damaged;
}

fs::path FinishedFiles::unfinished(const std::string& file) const {
  fs::path path = folder_ / (file + kUnfinished);
  fs::create_directories(path.parent_path());
  unlink_if_there(path);  // left by an earlier run of this identity
  return path;
}

void FinishedFiles::finish(const std::string& file) const {
  const fs::path path = folder_ / (file + kUnfinished);
  const FileDescriptor opened = open_for_reading(path);
  if (::fsync(opened.get()) != 0 && errno != EINVAL) fail_system(path.string(), "sync", errno);
  // The digest is written first, so no file has its final name without a digest. A truncated digest
  // makes the file count as damaged.
  const fs::path digest = folder_ / (file + kDigest);
  unlink_if_there(digest);  // left by an earlier run of this identity
  write_new_file(digest, digest_of(path));
  if (::fsync(open_for_reading(digest).get()) != 0 && errno != EINVAL) {
    fail_system(digest.string(), "sync", errno);
  }
  fs::rename(path, folder_ / file);  // replaces at most a damaged file of this identity
}

void FinishedFiles::take(const std::string& file, const fs::path& to) const {
  fs::create_directories(to.parent_path());
  std::error_code error;
  fs::create_hard_link(folder_ / file, to, error);
  if (error) fs::rename(folder_ / file, to);  // `to` is in the staged folder that this run fills
}

void FinishedFiles::remove(std::span<const std::string> files) const {
  // Only runs of this identity write these names into a folder with this identity.
  for (const std::string& file : files) {
    unlink_if_there(folder_ / file);
    unlink_if_there(folder_ / (file + kUnfinished));
    unlink_if_there(folder_ / (file + kDigest));
  }
  unlink_if_there(folder_ / kIdentity);
  remove_empty_folders(folder_);
}

}  // namespace fp8kv
