// Reading files; file_output.cpp writes them.
#include "files/file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "files/descriptor.h"
#include "files/mapping_guard.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

std::string read_descriptor(int descriptor, const std::string& name, uint64_t max_bytes) {
  std::string text;
  char block[1 << 16];
  for (;;) {
    const ssize_t got = ::read(descriptor, block, sizeof block);
    if (got < 0 && errno == EINTR) {
      check_interrupt();
      continue;
    }
    if (got < 0) fail_system(name, "read", errno);
    if (got == 0) return text;
    check_interrupt();
    text.append(block, static_cast<size_t>(got));
    if (text.size() > max_bytes) {
      fail(quote(name), ": longer than the ", human_bytes(max_bytes), " that are accepted here");
    }
  }
}

const char* kind_name(mode_t mode) {
  return S_ISFIFO(mode)   ? "a named pipe"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISCHR(mode)  ? "a device"
         : S_ISBLK(mode)  ? "a disk"
                          : "no file";
}

[[noreturn]] void fail_irregular(const fs::path& path, mode_t mode) {
  throw Error(cat(quote(path.string()), ": is ", kind_name(mode), ", expected a regular file"),
              "a model's files are read at will, not as a stream: put a file there");
}

}  // namespace

FileDescriptor open_for_reading(const fs::path& path, int more_flags) {
  int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | more_flags);
  while (opened < 0 && errno == EINTR) {  // open waits for the writer of a named pipe
    check_interrupt();
    opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | more_flags);
  }
  FileDescriptor file(opened);
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      throw Error(cat(quote(path.string()), ": no such file"), "check the path");
    }
    fail_system(path.string(), "open", errno);
  }
  return file;
}

FileDescriptor open_regular(const fs::path& path) {
  // Opening a device can have an effect on it, and a socket cannot be opened.
  struct stat status {};
  const bool known = ::stat(path.c_str(), &status) == 0;
  if (known && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    fail_irregular(path, status.st_mode);
  }
  return open_for_reading(path, O_NONBLOCK);
}

uint64_t regular_size(const FileDescriptor& file, const fs::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_system(path.string(), "stat", errno);
  if (S_ISDIR(status.st_mode)) fail(quote(path.string()), ": is a folder, expected a file");
  if (!S_ISREG(status.st_mode)) fail_irregular(path, status.st_mode);
  return static_cast<uint64_t>(status.st_size);
}

struct MappedFile::Mapping {
  Mapping(void* to, size_t size) : address(to), bytes(size), guard(to, size) {}
  ~Mapping() { ::munmap(address, bytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void* address;
  size_t bytes;
  MappingGuard guard;
};

MappedFile MappedFile::open(const fs::path& path) {
  const FileDescriptor file = open_regular(path);
  const uint64_t size = regular_size(file, path);
  MappedFile mapped;
  mapped.path_ = path;
  mapped.stamp_ = stamp_of(file.get(), path);
  if (size == 0) return mapped;  // mmap refuses length 0; an empty span will do
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail_system(path.string(), "map", errno);
  mapped.bytes_ = {static_cast<const std::byte*>(address), static_cast<size_t>(size)};
  mapped.mapping_ = std::make_shared<const Mapping>(address, static_cast<size_t>(size));
  return mapped;
}

void MappedFile::check_unchanged() const {
  fp8kv::check_unchanged(path_, stamp_);
  if (mapping_ && mapping_->guard.faulted()) {
    throw changed_while_read(path_, "a part of it could not be read");
  }
}

std::string read_text(const fs::path& path, uint64_t max_bytes) {
  if (path == "-") return read_descriptor(STDIN_FILENO, "standard input", max_bytes);
  const FileDescriptor file = open_for_reading(path);
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode)) {
    fail(quote(path.string()), ": is a folder, expected a file");
  }
  return read_descriptor(file.get(), path.string(), max_bytes);
}

std::string read_regular_text(const fs::path& path, uint64_t max_bytes) {
  const FileDescriptor file = open_regular(path);
  regular_size(file, path);
  return read_descriptor(file.get(), path.string(), max_bytes);
}

InputFile::InputFile(fs::path path) : path_(std::move(path)) {
  FileDescriptor file = open_regular(path_);
  regular_size(file, path_);
  stamp_ = stamp_of(file.get(), path_);
  descriptor_ = std::shared_ptr<const int>(new int(file.release()), [](const int* descriptor) {
    ::close(*descriptor);
    delete descriptor;
  });
}

std::string InputFile::read(uint64_t offset, uint64_t length) const {
  check_range(offset, length);
  std::string bytes(static_cast<size_t>(length), '\0');
  read(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void InputFile::check_range(uint64_t offset, uint64_t length) const {
  const uint64_t end = stamp_.bytes;
  if (offset > end || length > end - offset) {
    fail(quote(path_.string()), ": ends at byte ", end, ", expected at least ", length,
         " more from byte ", offset);
  }
}

void InputFile::read(uint64_t offset, std::span<std::byte> into) const {
  check_range(offset, into.size());
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(*descriptor_, into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system(path_.string(), "read", errno);
    if (got == 0) throw changed_while_read(path_, cat("ends at byte ", offset + done));
    done += static_cast<size_t>(got);
  }
}

uint64_t regular_file_size(const fs::path& path) {
  return InputFile(path).size();
}

std::string read_range(const fs::path& path, uint64_t offset, uint64_t length) {
  return InputFile(path).read(offset, length);
}

}  // namespace fp8kv
