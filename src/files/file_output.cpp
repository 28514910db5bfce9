// Writes outputs that appear whole or not at all.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/shell.h"
#include "files/descriptor.h"
#include "files/file.h"
#include "files/made_folder.h"
#include "files/special_file.h"
#include "files/temporary.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

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

// Throws unless something can be made at `path`: its parent must exist and be writable.
void check_parent(const fs::path& path) {
  const fs::path parent = parent_of(path);
  if (!fs::is_directory(parent)) {
    throw Error(cat(quote(parent.string()), ": no such folder"),
                cat("make it first: mkdir -p ", shell_path(parent.string())));
  }
  if (::access(parent.c_str(), W_OK) != 0) fail_system(path.string(), "create", errno);
}

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

FileDescriptor create_new(const fs::path& path, const fs::path& shown) {
  FileDescriptor out(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (out.get() < 0) fail_system(shown.string(), "create", errno);
  return out;
}

void sync_file(const FileDescriptor& file, const fs::path& path) {
  if (::fsync(file.get()) != 0 && errno != EINVAL) fail_system(path.string(), "sync", errno);
}

void close_file(FileDescriptor& file, const fs::path& path) {
  if (file.close() != 0) fail_system(path.string(), "close", errno);
}

// Syncs the folder after everything is written, since the first sync also writes the journal for
// the rest.
void sync_tree(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) {
      sync_tree(entry.path());
    } else if (entry.hard_link_count() == 1) {
      sync_file(open_for_reading(entry.path()), entry.path());
    }
  }
  sync_directory(folder);
}

// `shown` stands for the path in messages.
void write_new(const fs::path& path, std::string_view bytes, const fs::path& shown) {
  FileDescriptor out = create_new(path, shown);
  write_all(out.get(), bytes, shown.string());
  close_file(out, shown);
}

void write_special(const fs::path& path, std::string_view bytes) {
  FileDescriptor out(open_special_file(path));
  if (out.get() < 0) fail_system(path.string(), "open", errno);
  write_all(out.get(), bytes, path.string());
  close_file(out, path);
}

}  // namespace

void write_new_file(const fs::path& path, std::string_view bytes) {
  write_new(path, bytes, path);
}

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

void write_stdout(std::string_view bytes) {
  write_all(STDOUT_FILENO, bytes, "standard output");
}

fs::path behind_links(const fs::path& path) {
  constexpr int kMostLinks = 40;  // like Linux
  fs::path at = path;
  std::error_code ignored;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, ignored)); ++links) {
    if (links == kMostLinks) fail_system(path.string(), "follow", ELOOP);
    at = at.parent_path() / fs::read_symlink(at);  // an absolute target replaces the parent
  }
  return at;
}

Error already_exists(const fs::path& path) {
  return Error::wanting_way_out(cat(quote(path.string()), ": already exists"));
}

bool same_output(const fs::path& a, const fs::path& b) {
  if (a.empty() || b.empty()) return false;
  if (a == "-" || b == "-") return a == b;
  if (is_special_file(a) || is_special_file(b)) return false;
  std::error_code ignored;
  return (a.filename() == b.filename() && fs::equivalent(parent_of(a), parent_of(b), ignored)) ||
         fs::equivalent(a, b, ignored);
}

void check_output_file(const fs::path& path, bool overwrite) {
  if (path.empty() || path == "-" || is_special_file(path)) return;
  if (exists_at(path)) {
    if (fs::is_directory(path)) fail(quote(path.string()), ": is a folder, expected a file");
    if (fs::is_block_file(path)) fail(quote(path.string()), ": is a disk, expected a file");
    if (!overwrite) throw already_exists(path);
  }
  check_parent(behind_links(path));
}

void write_file_atomically(const fs::path& named, std::string_view bytes, bool overwrite) {
  if (named == "-") return write_stdout(bytes);
  if (is_special_file(named)) return write_special(named, bytes);
  check_output_file(named, overwrite);
  const fs::path path = behind_links(named);
  Temporary temporary = Temporary::file(path);
  write_all(temporary.descriptor().get(), bytes, path.string());
  sync_file(temporary.descriptor(), path);
  check_interrupt();
  rename_into_place(temporary.path(), path, overwrite);
  temporary.keep();
  sync_directory(parent_of(path));
}

void rename_into_place(const fs::path& from, const fs::path& to, bool overwrite) {
  // With `overwrite`, a file is replaced that the user named with --force. Without it,
  // RENAME_NOREPLACE keeps what appeared at `to` meanwhile. File systems without that flag get
  // rename, which can replace a file or an empty folder that appears after the check.
  const unsigned flags = overwrite ? 0 : RENAME_NOREPLACE;
  int result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags);
  if (result != 0 && (errno == EINVAL || errno == ENOSYS) && !exists_at(to)) {
    result = ::rename(from.c_str(), to.c_str());
  }
  if (result != 0 && (errno == EEXIST || errno == ENOTEMPTY)) throw already_exists(to);
  if (result != 0) fail_system(to.string(), "rename into place", errno);
}

StagedDirectory::StagedDirectory(fs::path target, bool overwrite)
    : target_(std::move(target)), overwrite_(overwrite) {
  // "out/" and "out" are the same folder; only the second has a name to put a suffix on.
  if (target_.filename().empty()) target_ = target_.parent_path();
  if (exists_at(target_) && !overwrite_) throw already_exists(target_);
  target_ = behind_links(target_);
  if (exists_at(target_) && !fs::is_directory(target_)) {
    fail(quote(target_.string()), ": is a file, expected a folder");
  }
  check_parent(target_);
  temporary_ = std::make_unique<Temporary>(Temporary::folder(target_));
}

StagedDirectory::~StagedDirectory() = default;

const fs::path& StagedDirectory::path() const {
  return temporary_->path();
}

void StagedDirectory::publish() {
  make_final();
  if (overwrite_ && exists_at(target_)) {
    replace_target();
  } else {
    rename_into_place(path(), target_, false);
    temporary_->keep();
  }
  sync_directory(parent_of(target_));
}

void StagedDirectory::publish_as(const fs::path& target) {
  make_final();
  rename_into_place(path(), target, false);
  temporary_->keep();
  sync_directory(parent_of(target));
}

void StagedDirectory::make_final() {
  check_interrupt();
  write_made_folder_record(path());
  sync_tree(path());
}

void StagedDirectory::replace_target() {
  check_made_folder(target_, target_);
  const fs::path& staging = path();
  // An exchange loses nothing: the old folder gets the temporary's name.
  if (::renameat2(AT_FDCWD, staging.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) {
      fail_system(target_.string(), "rename into place", errno);
    }
    throw Error(cat(quote(target_.string()), ": this file system cannot exchange two folders"),
                "remove the output folder yourself, then run again", ErrorKind::resource);
  }
  temporary_->keep();
  with_context(cat(quote(target_.string()), " is made, but the folder before it is not removed"),
               [&] { remove_made_folder(staging); });
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
