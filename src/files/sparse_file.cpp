#include "files/sparse_file.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace fp8kv {

SparseFile::SparseFile(std::filesystem::path path, uint64_t bytes)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (file_.get() < 0) fail_system(path_.string(), "create", errno);
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) {
    fail_system(path_.string(), "make a hole in", errno);
  }
}

void SparseFile::write(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_system(path_.string(), "write", errno);
    bytes.remove_prefix(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
}

}  // namespace fp8kv
