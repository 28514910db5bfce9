#include "files/trusted_file.h"

#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "base/text.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

bool is_trusted(uid_t owner) {
  struct stat program {};
  return owner == 0 || owner == ::geteuid() ||
         (::stat("/proc/self/exe", &program) == 0 && owner == program.st_uid);
}

bool others_may_write(const struct stat& status) {
  const bool is_sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  const bool is_shared_group = status.st_gid != 0 && status.st_gid != status.st_uid;
  return !is_sticky &&
         ((status.st_mode & S_IWOTH) != 0 || ((status.st_mode & S_IWGRP) != 0 && is_shared_group));
}

std::string why_not_here(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return cat(quote(path.string()), " cannot be looked at");
  if (!is_trusted(status.st_uid)) {
    return cat(quote(path.string()), " belongs to user ", status.st_uid,
               ", who is neither root, nor you, nor the owner of this program");
  }
  if (others_may_write(status)) {
    return cat(quote(path.string()), " can be changed by other users");
  }
  return "";
}

}  // namespace

std::string why_not_trusted(const fs::path& file) {
  std::error_code error;
  fs::path path = fs::canonical(file, error);
  if (error) return cat(quote(file.string()), " cannot be found");
  for (;; path = path.parent_path()) {
    if (std::string why = why_not_here(path); !why.empty()) return why;
    if (path == path.root_path()) return "";
  }
}

}  // namespace fp8kv
