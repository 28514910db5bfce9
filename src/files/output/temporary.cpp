#include "files/output/temporary.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "base/error.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr int kMostNames = 1000;
constexpr int kMostLockAttempts = 100;  // one millisecond apart
constexpr std::string_view kMark = ".fp8kv-tmp-";

// "out/" and "out" are the same folder; only the second has a name to put a suffix on.
fs::path without_slash(const fs::path& target) {
  return target.filename().empty() ? target.parent_path() : target;
}

// The name may be taken: process 1 of one container is not process 1 of another.
fs::path name_of(const fs::path& target, int attempt) {
  return cat(without_slash(target).string(), kMark, ::getpid(),
             attempt == 0 ? "" : cat(".", attempt));
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Whether name_of could give `name` for a target named `of`.
bool is_temporary(std::string_view name, std::string_view of) {
  if (!name.starts_with(of) || !name.substr(of.size()).starts_with(kMark)) return false;
  const std::string_view number = name.substr(of.size() + kMark.size());
  const size_t dot = std::min(number.find('.'), number.size());
  return is_digits(number.substr(0, dot)) &&
         (dot == number.size() || is_digits(number.substr(dot + 1)));
}

bool is_same_file(int descriptor, const fs::path& path) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Locks a temporary that was just made. find_leftovers may hold the lock for a moment. On a file
// system without locks the temporary stays unlocked.
void lock(const FileDescriptor& file) {
  for (int attempt = 0; attempt < kMostLockAttempts; ++attempt) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::usleep(1000);
  }
}

bool is_locked_by_another(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file.get() >= 0 && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

Temporary Temporary::file(const fs::path& target) {
  for (int attempt = 0;; ++attempt) {
    fs::path path = name_of(target, attempt);
    FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    const bool taken = file.get() < 0 && errno == EEXIST && attempt < kMostNames;
    if (file.get() < 0 && !taken) fail_system(target.string(), "create", errno);
    if (taken) continue;
    lock(file);
    return {std::move(path), std::move(file)};
  }
}

Temporary Temporary::folder(const fs::path& target) {
  for (int attempt = 0;; ++attempt) {
    fs::path path = name_of(target, attempt);
    const bool made = ::mkdir(path.c_str(), 0777) == 0;
    if (!made && errno == EEXIST && attempt < kMostNames) continue;
    if (!made) fail_system(path.string(), "create folder", errno);
    FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() < 0) {
      const int reason = errno;
      ::rmdir(path.c_str());  // made above; rmdir removes it only if it is empty
      fail_system(path.string(), "open", reason);
    }
    lock(folder);
    return {std::move(path), std::move(folder)};
  }
}

Temporary::~Temporary() {
  // Removes only what this process made with O_EXCL or mkdir, and only if the name still has its
  // inode.
  if (kept_ || descriptor_.get() < 0 || !is_same_file(descriptor_.get(), path_)) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<Leftover> find_leftovers(const fs::path& target) {
  const fs::path named = without_slash(target);
  const fs::path folder = named.parent_path();
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error);
       !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (is_temporary(name, named.filename().string())) found.push_back(folder / name);
  }
  std::sort(found.begin(), found.end());
  std::vector<Leftover> left;
  for (fs::path& path : found) {
    const bool in_use = is_locked_by_another(path);
    left.push_back({std::move(path), in_use});
  }
  return left;
}

}  // namespace fp8kv
