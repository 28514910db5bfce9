#include "files/output/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

Temporary only_temporary(const fs::path& path) {
  for (const Leftover& each : find_leftovers(path)) {
    if (!each.in_use) continue;
    throw Error(cat(quote(path.string()), ": is being written by another process"),
                "wait for it, or choose another output");
  }
  return Temporary::file(path);
}

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), temporary_(only_temporary(path_)) {}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(temporary_.descriptor().get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) {
      check_interrupt();
      continue;
    }
    if (put < 0) fail_system(path_.string(), "write", errno);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

void AtomicFile::commit() {
  if (::fsync(temporary_.descriptor().get()) != 0) fail_system(path_.string(), "sync", errno);
  // Replaces the state of an earlier layer. CalibrationState has checked its seal and its identity.
  if (::rename(temporary_.path().c_str(), path_.c_str()) != 0) {
    fail_system(path_.string(), "rename into place", errno);
  }
  temporary_.keep();
}

}  // namespace fp8kv
