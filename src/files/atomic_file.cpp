#include "files/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"

namespace fp8kv {
namespace fs = std::filesystem;

fs::path AtomicFile::temporary_of(const fs::path& path) {
  return path.string() + ".new";
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), temporary_(temporary_of(path_)) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_system(path_.string(), "create", errno);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(std::exchange(descriptor_, -1));
    throw Error(cat(quote(path_.string()), ": is being written by another process"),
                "wait for it, or choose another output");
  }
  if (::ftruncate(descriptor_, 0) != 0) {
    const int reason = errno;
    ::close(std::exchange(descriptor_, -1));
    fail_system(path_.string(), "write", reason);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(descriptor_);
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) {
      check_interrupt();
      continue;
    }
    if (put < 0) fail_system(path_.string(), "write", errno);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail_system(path_.string(), "sync", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail_system(path_.string(), "rename into place", errno);
  }
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_system(path_.string(), "close", errno);
}

}  // namespace fp8kv
