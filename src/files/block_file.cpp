#include "files/block_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "files/file_stamp.h"

namespace fp8kv {
namespace {

// Returns -1 if the file system does not support direct reads.
int open_direct(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
}

int open_buffered(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 && errno == ENOENT) {
    throw Error(cat(quote(path.string()), ": no such file"), "check the path");
  }
  if (descriptor < 0) fail_system(path.string(), "open", errno);
  return descriptor;
}

// Turns direct reads off, for file systems that accept the flag but refuse the reads. Reads stay
// aligned, so other threads need not know. False if the flag was off already.
bool stop_direct(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0 &&
         ::fcntl(descriptor, F_SETFL, flags & ~O_DIRECT) == 0;
}

// The message uses the size of the file, not the requested block: several threads may find the end.
Error ended_early(int descriptor, const std::filesystem::path& path) {
  return changed_while_read(path, cat("ends at byte ", stamp_of(descriptor, path).bytes));
}

}  // namespace

BlockFile::BlockFile(std::filesystem::path path, bool direct) : path_(std::move(path)) {
  int descriptor = direct ? open_direct(path_) : -1;
  direct_ = descriptor >= 0;
  if (!direct_) descriptor = open_buffered(path_);
  descriptor_ = std::shared_ptr<const int>(new int(descriptor), [](const int* open) {
    ::close(*open);
    delete open;
  });
}

std::byte* BlockFile::read(uint64_t offset, size_t length, std::span<std::byte> buffer) const {
  const size_t before = direct_ ? offset % kAlignment : 0;
  const size_t needed = before + length;
  const size_t asked = direct_ ? (needed + kAlignment - 1) / kAlignment * kAlignment : needed;
  FP8KV_ASSERT(asked <= buffer.size());
  for (size_t done = 0; done < needed;) {
    const ssize_t got = ::pread(*descriptor_, buffer.data() + done, asked - done,
                                static_cast<off_t>(offset - before + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EINVAL && done == 0 && stop_direct(*descriptor_)) continue;
    if (got < 0) fail_system(path_.string(), "read", errno);
    if (got == 0) throw ended_early(*descriptor_, path_);
    // Direct reads must continue at an aligned offset. Only the end of the file may stop elsewhere.
    const size_t step = static_cast<size_t>(got);
    done += direct_ && done + step < needed ? step / kAlignment * kAlignment : step;
    if (step < kAlignment && direct_ && done < needed) {
      throw ended_early(*descriptor_, path_);
    }
  }
  return buffer.data() + before;
}

}  // namespace fp8kv
