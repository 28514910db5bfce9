#include "files/output/special_file.h"

#include <charconv>
#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr int kMostLinks = 40;  // like Linux

// The descriptor of this process that `path` names, directly or through links. Opening by name
// would not do: for a descriptor of a file it would write from the start, over what a shell has
// appended.
std::optional<int> named_descriptor(fs::path path) {
  std::error_code ignored;
  const fs::path descriptors = fs::canonical("/proc/self/fd", ignored);
  if (descriptors.empty()) return std::nullopt;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (fs::canonical(parent, ignored) == descriptors) {
      const std::string name = path.filename().string();
      int number = -1;
      const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
      if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) return std::nullopt;
      return number;
    }
    if (!fs::is_symlink(fs::symlink_status(path, ignored))) return std::nullopt;
    path = parent / fs::read_symlink(path, ignored);  // an absolute link replaces the parent
  }
  return std::nullopt;
}

}  // namespace

bool is_special_file(const fs::path& path) {
  if (named_descriptor(path)) return true;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  return S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
}

int open_special_file(const fs::path& path) {
  if (const auto descriptor = named_descriptor(path)) {
    return ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0);
  }
  return ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

}  // namespace fp8kv
