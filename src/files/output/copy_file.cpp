#include "files/output/copy_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "base/error.h"
#include "base/interrupt.h"
#include "files/file.h"
#include "files/output/output_steps.h"

namespace fp8kv {

namespace fs = std::filesystem;

namespace {

bool not_supported_here(int errno_value) {
  switch (errno_value) {
    case EOPNOTSUPP:
    case EXDEV:
    case EINVAL:
    case ENOSYS:
    case ENOTTY:
    case EPERM:
    case EACCES:
    case EMLINK:
    case ETXTBSY:
    case EBADF:
      return true;
    default:
      return false;
  }
}

// Throws because the requested kind of link is impossible between these places.
[[noreturn]] void fail_link(const fs::path& from, const char* how, int reason) {
  throw Error(cat(quote(from.string()), ": cannot be ", how,
                  " into the output: ", std::generic_category().message(reason)),
              "the link mode 'auto' copies where links are impossible", ErrorKind::resource);
}

// Copies from the current position of `in`.
void copy_bytes(const FileDescriptor& in, const FileDescriptor& out, uint64_t size,
                const fs::path& from, const fs::path& to) {
  uint64_t left = size;
  bool kernel_copies = true;
  while (left > 0) {
    check_interrupt();
    const size_t step = static_cast<size_t>(std::min<uint64_t>(left, uint64_t(64) << 20));
    if (kernel_copies) {
      const ssize_t moved = ::copy_file_range(in.get(), nullptr, out.get(), nullptr, step, 0);
      if (moved > 0) {
        left -= static_cast<uint64_t>(moved);
        continue;
      }
      if (moved < 0 && errno == EINTR) continue;
      if (moved < 0 && !not_supported_here(errno)) fail_system(to.string(), "write", errno);
      kernel_copies = false;
    }
    char block[1 << 16];
    const ssize_t got = ::read(in.get(), block, std::min(step, sizeof block));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system(from.string(), "read", errno);
    if (got == 0) fail(quote(from.string()), ": became shorter while it was copied");
    write_all(out.get(), {block, static_cast<size_t>(got)}, to.string());
    left -= static_cast<uint64_t>(got);
  }
}

// Keeps the permissions of the original. The owner is whoever makes the copy.
void keep_mode(const FileDescriptor& in, const FileDescriptor& out, const fs::path& to) {
  struct stat status {};
  if (::fstat(in.get(), &status) != 0) fail_system(to.string(), "stat", errno);
  const mode_t mode = (status.st_mode & 0777) | S_IRUSR;
  if (::fchmod(out.get(), mode) != 0 && errno != EPERM && errno != ENOTSUP) {
    fail_system(to.string(), "set the mode of", errno);
  }
}

}  // namespace

void write_new_file(const fs::path& path, std::string_view head, const fs::path& from,
                    std::span<const ByteRange> parts) {
  const FileDescriptor in = open_regular(from);
  FileDescriptor out = create_new(path, path);
  write_all(out.get(), head, path.string());
  for (const ByteRange& part : parts) {
    if (::lseek(in.get(), static_cast<off_t>(part.begin), SEEK_SET) < 0) {
      fail_system(from.string(), "seek", errno);
    }
    copy_bytes(in, out, part.end - part.begin, from, path);
  }
  keep_mode(in, out, path);
  close_file(out, path);
}

LinkResult link_or_copy(const fs::path& from, const fs::path& to, LinkMode mode) {
  const FileDescriptor in = open_regular(from);
  const uint64_t size = regular_size(in, from);
  if (mode == LinkMode::automatic || mode == LinkMode::reflink) {
    FileDescriptor out = create_new(to, to);
    if (::ioctl(out.get(), FICLONE, in.get()) == 0) {
      keep_mode(in, out, to);
      close_file(out, to);
      return LinkResult::reflinked;
    }
    const int reason = errno;
    ::unlink(to.c_str());  // create_new made it above, with O_EXCL
    if (!not_supported_here(reason)) fail_system(to.string(), "create", reason);
    if (mode == LinkMode::reflink) fail_link(from, "reflinked", reason);
  }
  if (mode == LinkMode::automatic || mode == LinkMode::hard) {
    // AT_SYMLINK_FOLLOW: entries of a hub cache are symbolic links to the real files.
    if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      return LinkResult::hard_linked;
    }
    const int reason = errno;
    if (!not_supported_here(reason)) fail_system(to.string(), "create", reason);
    if (mode == LinkMode::hard) fail_link(from, "hard-linked", reason);
  }
  FileDescriptor out = create_new(to, to);
  try {
    copy_bytes(in, out, size, from, to);
    keep_mode(in, out, to);
    close_file(out, to);
  } catch (...) {
    ::unlink(to.c_str());  // create_new made it above, with O_EXCL
    throw;
  }
  return LinkResult::copied;
}

}  // namespace fp8kv
