#include "files/temporary.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <linux/magic.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <system_error>
#include <unistd.h>

#include "base/error.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr int kMostNames = 1000;
constexpr std::string_view kMark = ".tmp-";

// "out/" and "out" are the same folder; only the second has a name to put a suffix on.
fs::path without_slash(const fs::path& target) {
  return target.filename().empty() ? target.parent_path() : target;
}

// Process 1 of one container is not that of another: a number may be taken.
fs::path name_of(const fs::path& target, int attempt) {
  return cat(without_slash(target).string(), kMark, ::getpid(),
             attempt == 0 ? "" : cat(".", attempt));
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Whether `name` is one that name_of gives for a target of the name `of`.
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

// Whether it was taken from whoever made it: one who sweeps may come between making and locking.
bool is_lost(int descriptor, const fs::path& path) {
  return (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
         !is_same_file(descriptor, path);
}

// Not all of these tell one machine of another's locks.
bool is_shared_between_machines(int descriptor) {
  constexpr std::array<unsigned long, 10> kTypes = {
      NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  SMB2_SUPER_MAGIC, CIFS_SUPER_MAGIC,
      CEPH_SUPER_MAGIC, FUSE_SUPER_MAGIC, AFS_SUPER_MAGIC,  V9FS_MAGIC,
      0x0BD00BD0,  // Lustre
      0x47504653   // GPFS
  };
  struct statfs system {};
  if (::fstatfs(descriptor, &system) != 0) return true;
  const auto type = static_cast<unsigned long>(system.f_type) & 0xFFFFFFFFu;
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

// Nothing when it has gone by itself.
std::optional<Leftover> sweep(const fs::path& path) {
  using State = Leftover::State;
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return std::nullopt;
  if (file.get() < 0) return Leftover{path, State::unsure};
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return Leftover{path, State::unsure};
  const bool ours =
      status.st_uid == ::geteuid() && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return Leftover{path, errno == EWOULDBLOCK ? State::in_use : State::unsure};
  }
  if (!is_same_file(file.get(), path)) return std::nullopt;
  if (!ours || is_shared_between_machines(file.get())) return Leftover{path, State::unsure};
  std::error_code error;
  fs::remove_all(path, error);
  return Leftover{path, error ? State::unsure : State::removed};
}

}  // namespace

Temporary Temporary::file(const fs::path& target) {
  for (int attempt = 0;; ++attempt) {
    fs::path path = name_of(target, attempt);
    FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    const bool taken = file.get() < 0 && errno == EEXIST && attempt < kMostNames;
    if (file.get() < 0 && !taken) fail_system(target.string(), "create", errno);
    if (!taken && !is_lost(file.get(), path)) return {std::move(path), std::move(file)};
  }
}

Temporary Temporary::folder(const fs::path& target) {
  for (int attempt = 0;; ++attempt) {
    fs::path path = name_of(target, attempt);
    const bool made = ::mkdir(path.c_str(), 0777) == 0;
    if (!made && errno == EEXIST && attempt < kMostNames) continue;
    if (!made) fail_system(path.string(), "create folder", errno);
    FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() < 0 && errno == ENOENT) continue;
    if (folder.get() < 0) {
      const int reason = errno;
      ::rmdir(path.c_str());
      fail_system(path.string(), "open", reason);
    }
    if (!is_lost(folder.get(), path)) return {std::move(path), std::move(folder)};
  }
}

Temporary::~Temporary() {
  if (kept_ || descriptor_.get() < 0) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<Leftover> sweep_temporaries(const fs::path& target) {
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
  for (const fs::path& path : found) {
    if (auto one = sweep(path)) left.push_back(*std::move(one));
  }
  return left;
}

}  // namespace fp8kv
