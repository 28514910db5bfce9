#include "files/output/output_steps.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/shell.h"
#include "files/output/broken_pipe.h"

namespace fp8kv {

namespace fs = std::filesystem;

FileDescriptor create_new(const fs::path& path, const fs::path& shown) {
  FileDescriptor out(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (out.get() < 0) fail_system(shown.string(), "create", errno);
  return out;
}

void write_all(int descriptor, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) {
      check_interrupt();
      continue;
    }
    if (put < 0 && errno == EPIPE && descriptor == STDOUT_FILENO) throw BrokenPipe{};
    if (put < 0) fail_system(name, "write", errno);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

void sync_file(const FileDescriptor& file, const fs::path& path) {
  if (::fsync(file.get()) != 0 && errno != EINVAL) fail_system(path.string(), "sync", errno);
}

void close_file(FileDescriptor& file, const fs::path& path) {
  if (file.close() != 0) fail_system(path.string(), "close", errno);
}

void sync_directory(const fs::path& path) {
  FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) fail_system(path.string(), "open", errno);
  // Some network file systems cannot sync directories. There the rename itself must do.
  if (::fsync(directory.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    fail_system(path.string(), "sync", errno);
  }
}

fs::path parent_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

bool exists_at(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

void check_parent(const fs::path& path) {
  const fs::path parent = parent_of(path);
  if (!fs::is_directory(parent)) {
    throw Error(cat(quote(parent.string()), ": no such folder"),
                cat("make it first: mkdir -p ", shell_path(parent.string())));
  }
  if (::access(parent.c_str(), W_OK) != 0) fail_system(path.string(), "create", errno);
}

}  // namespace fp8kv
