#include "files/finished_files.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "files/descriptor.h"
#include "files/file.h"
#include "files/temporary.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr const char* kIdentity = "fp8kv-resume.json";
constexpr const char* kUnfinished = ".unfinished";
constexpr const char* kDigest = ".sha256";
constexpr uint64_t kPieceBytes = uint64_t(1) << 20;

// The folder, made where it is not there.
FileDescriptor locked(const fs::path& folder) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) fail_system(folder.string(), "create folder", error.value());
  FileDescriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0) fail_system(folder.string(), "open", errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw Error(cat(quote(folder.string()), ": another run is writing there now"),
                "wait for it, or name another output");
  }
  return lock;
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
    : folder_(path_for(out)), lock_(locked(folder_)) {
  const fs::path file = folder_ / kIdentity;
  if (!fs::exists(file)) {
    sweep_temporaries(file);
    if (!fs::is_empty(folder_)) {
      throw Error(
          cat(quote(folder_.string()), ": is not empty, and not from an earlier run with --resume"),
          "move it away: that is where files are kept that are done");
    }
    write_file_atomically(file, identity, false);
  } else if (read_regular_text(file) != identity) {
    throw Error(cat(quote(folder_.string()),
                    ": is of a run with another model, other options or another version"),
                cat("run that again to go on, or remove it: rm -r ", quote(folder_.string())));
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
  fs::remove(path);
  return path;
}

void FinishedFiles::finish(const std::string& file) const {
  const fs::path path = folder_ / (file + kUnfinished);
  const FileDescriptor opened = open_for_reading(path);
  if (::fsync(opened.get()) != 0 && errno != EINVAL) fail_system(path.string(), "sync", errno);
  // Before the file has its name, so that none is ever finished without a digest.
  write_file_atomically(folder_ / (file + kDigest), digest_of(path), true);
  fs::rename(path, folder_ / file);
}

void FinishedFiles::take(const std::string& file, const fs::path& to) const {
  fs::create_directories(to.parent_path());
  std::error_code error;
  fs::create_hard_link(folder_ / file, to, error);
  if (error) fs::rename(folder_ / file, to);
}

void FinishedFiles::remove() const {
  std::error_code error;
  fs::remove_all(folder_, error);
  if (error) fail_system(folder_.string(), "remove", error.value());
}

}  // namespace fp8kv
