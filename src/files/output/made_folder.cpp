#include "files/output/made_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/shell.h"
#include "files/file.h"
#include "files/output/write_file.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kFirstLine = "fp8kv made these files: bytes, mtime of a hard link, name";
constexpr uint64_t kMostRecordBytes = uint64_t{64} << 20;

std::string escaped(std::string_view name) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f && c != '%') {
      text += c;
    } else {
      text += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return text;
}

struct stat status_of(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) fail_system(path.string(), "stat", errno);
  return status;
}

// All files below `folder` except its record: files of every kind and links, but no folders.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    check_interrupt();
    const bool is_folder = entry.is_directory() && !entry.is_symlink();
    if (!is_folder && entry.path() != folder / kMadeFolderRecord) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// `mtime` is "-" for a file that is not a hard link.
std::string line_of(const fs::path& name, const struct stat& status, const std::string& mtime) {
  return cat(status.st_size, " ", mtime, " ", escaped(name.string()));
}

std::string text_of(const timespec& time) {
  return cat(time.tv_sec, ".", time.tv_nsec);
}

// Returns no lines if there is no record, or if this program did not write it.
std::set<std::string> recorded_lines(const fs::path& folder) {
  const fs::path record = folder / kMadeFolderRecord;
  std::error_code error;
  if (fs::symlink_status(record, error).type() != fs::file_type::regular) return {};
  std::istringstream text(read_regular_text(record, kMostRecordBytes));
  std::string line;
  if (!std::getline(text, line) || line != kFirstLine) return {};
  std::set<std::string> lines = {line};
  while (std::getline(text, line)) lines.insert(line);
  return lines;
}

bool is_later(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

enum class State { unknown, changed, as_made };

// A change of a file moves its mtime and its ctime. cp -p and touch can set the mtime back, but not
// the ctime. Adding or removing a hard link also moves the ctime, so the record has the mtime of
// linked files.
State state_of(const fs::path& name, const struct stat& file, const std::set<std::string>& recorded,
               const struct stat& record) {
  if (!S_ISREG(file.st_mode)) return State::unknown;
  if (recorded.contains(line_of(name, file, text_of(file.st_mtim)))) return State::as_made;
  if (!recorded.contains(line_of(name, file, "-"))) return State::unknown;
  const bool changed = is_later(file.st_mtim, record.st_mtim) ||
                       (file.st_nlink == 1 && is_later(file.st_ctim, record.st_ctim));
  return changed ? State::changed : State::as_made;
}

[[noreturn]] void refuse(const std::string& what, const fs::path& shown) {
  throw Error(
      cat(what, ", so ", quote(shown.string()), " is not replaced"),
      cat("choose another output, or remove it yourself: rm -r ", shell_path(shown.string())));
}

}  // namespace

void write_made_folder_record(const fs::path& folder) {
  std::string text = cat(kFirstLine, "\n");
  for (const fs::path& file : files_in(folder)) {
    const struct stat status = status_of(file);
    const bool is_linked = status.st_nlink > 1;
    text += cat(
        line_of(file.lexically_relative(folder), status, is_linked ? text_of(status.st_mtim) : "-"),
        "\n");
  }
  write_new_file(folder / kMadeFolderRecord, text);
}

void check_made_folder(const fs::path& folder, const fs::path& shown) {
  if (fs::is_empty(folder)) return;
  const std::set<std::string> recorded = recorded_lines(folder);
  if (recorded.empty()) {
    refuse(
        cat(quote(shown.string()), ": has no ", kMadeFolderRecord, ", which folders of fp8kv have"),
        shown);
  }
  const struct stat record = status_of(folder / kMadeFolderRecord);
  for (const fs::path& file : files_in(folder)) {
    const fs::path name = file.lexically_relative(folder);
    const std::string what = quote((shown / name).string());
    switch (state_of(name, status_of(file), recorded, record)) {
      case State::as_made:
        break;
      case State::changed:
        refuse(cat(what, ": changed since fp8kv made it"), shown);
      case State::unknown:
        refuse(cat(what, ": was not made by fp8kv, or has another size or time since"), shown);
    }
  }
}

void remove_made_folder(const fs::path& folder) {
  if (!fs::is_empty(folder)) {
    const std::set<std::string> recorded = recorded_lines(folder);
    const fs::path record = folder / kMadeFolderRecord;
    const struct stat record_status = status_of(record);
    for (const fs::path& file : files_in(folder)) {
      // Check again that this program made the file.
      if (state_of(file.lexically_relative(folder), status_of(file), recorded, record_status) !=
          State::as_made) {
        fail(quote(file.string()), ": came or changed just now, and is kept");
      }
      if (::unlink(file.c_str()) != 0) fail_system(file.string(), "remove", errno);
    }
    if (::unlink(record.c_str()) != 0) fail_system(record.string(), "remove", errno);
  }
  remove_empty_folders(folder);
}

void remove_empty_folders(const fs::path& folder) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) folders.push_back(entry.path());
  }
  std::sort(folders.rbegin(), folders.rend());  // inner ones first
  folders.push_back(folder);
  for (const fs::path& each : folders) {
    if (::rmdir(each.c_str()) != 0) fail_system(each.string(), "remove", errno);
  }
}

}  // namespace fp8kv
