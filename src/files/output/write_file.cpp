#include "files/output/write_file.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

#include "base/interrupt.h"
#include "files/output/output_steps.h"
#include "files/output/special_file.h"
#include "files/output/temporary.h"

namespace fp8kv {

namespace fs = std::filesystem;

namespace {

void write_special(const fs::path& path, std::string_view bytes) {
  FileDescriptor out(open_special_file(path));
  if (out.get() < 0) fail_system(path.string(), "open", errno);
  write_all(out.get(), bytes, path.string());
  close_file(out, path);
}

}  // namespace

void write_new_file(const fs::path& path, std::string_view bytes) {
  FileDescriptor out = create_new(path, path);
  write_all(out.get(), bytes, path.string());
  close_file(out, path);
}

void write_stdout(std::string_view bytes) {
  write_all(STDOUT_FILENO, bytes, "standard output");
}

fs::path behind_links(const fs::path& path) {
  constexpr int kMostHops = 40;  // like Linux
  fs::path at = path;
  std::error_code ignored;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, ignored)); ++links) {
    if (links == kMostHops) fail_system(path.string(), "follow", ELOOP);
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

}  // namespace fp8kv
