#include "files/output/new_file.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/interrupt.h"
#include "files/descriptor.h"

namespace fp8kv {

struct NewFile::Descriptor {
  FileDescriptor file;
};

NewFile::NewFile(std::filesystem::path path, std::filesystem::path shown, uint64_t bytes)
    : shown_(std::move(shown)) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) fail_system(shown_.string(), "create", errno);
  // Reserves room on the disk. File systems that cannot do that report another error, or nothing.
  if (bytes > 0 && ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0 &&
      errno == ENOSPC) {
    fail_system(shown_.string(), "write", ENOSPC);
  }
  descriptor_ = std::make_shared<Descriptor>(Descriptor{std::move(file)});
}

void NewFile::write(uint64_t offset, std::span<const std::byte> bytes) const {
  check_interrupt();
  while (!bytes.empty()) {
    const ssize_t put =
        ::pwrite(descriptor_->file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) {
      check_interrupt();
      continue;
    }
    if (put < 0) fail_system(shown_.string(), "write", errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
}

void NewFile::begin_sync(uint64_t offset, uint64_t length) const {
  ::sync_file_range(descriptor_->file.get(), static_cast<off_t>(offset), static_cast<off_t>(length),
                    SYNC_FILE_RANGE_WRITE);
}

void NewFile::sync() const {
  if (::fsync(descriptor_->file.get()) != 0 && errno != EINVAL) {
    fail_system(shown_.string(), "sync", errno);
  }
}

void NewFile::close() {
  if (descriptor_->file.close() != 0) fail_system(shown_.string(), "close", errno);
}

}  // namespace fp8kv
