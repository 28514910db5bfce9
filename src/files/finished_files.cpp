#include "files/finished_files.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include "base/error.h"
#include "base/shell.h"
#include "files/descriptor.h"
#include "files/file.h"
#include "files/temporary.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr const char* kIdentity = "fp8kv-resume.json";
constexpr const char* kUnfinished = ".unfinished";

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
                cat("run that again to go on, or remove it: rm -r ", shell_path(folder_.string())));
  }
}

bool FinishedFiles::has(const std::string& file, uint64_t bytes) const {
  std::error_code error;
  const uint64_t found = fs::file_size(folder_ / file, error);
  return !error && found == bytes;
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
