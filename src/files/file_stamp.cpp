#include "files/file_stamp.h"

#include <cerrno>
#include <sys/stat.h>

namespace fp8kv {
namespace {

FileStamp stamp_from(const struct stat& status) {
  return {static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_ino};
}

}  // namespace

FileStamp stamp_of(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_system(path.string(), "stat", errno);
  return stamp_from(status);
}

Error changed_while_read(const std::filesystem::path& path, const std::string& how) {
  return Error(cat(quote(path.string()), ": changed while it was read: ", how),
               "run the same command again once nothing writes to that file");
}

void check_unchanged(const std::filesystem::path& path, const FileStamp& before) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      throw changed_while_read(path, "it is no longer there");
    fail_system(path.string(), "stat", errno);
  }
  const FileStamp now = stamp_from(status);
  if (now == before) return;
  if (now.inode != before.inode) throw changed_while_read(path, "another file took its name");
  if (now.bytes != before.bytes) {
    throw changed_while_read(
        path, cat("had ", grouped(before.bytes), " bytes, has ", grouped(now.bytes)));
  }
  throw changed_while_read(path, "it was written to");
}

}  // namespace fp8kv
