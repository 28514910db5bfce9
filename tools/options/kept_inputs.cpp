#include "options/kept_inputs.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "options/options.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

using Identity = std::pair<dev_t, ino_t>;

// Device and inode of a regular file, following links. nullopt for anything else: writing does not
// replace it.
std::optional<Identity> identity_of(const fs::path& path, int standard_stream) {
  struct stat status {};
  const int result =
      path == "-" ? ::fstat(standard_stream, &status) : ::stat(path.c_str(), &status);
  if (result != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

std::optional<Identity> folder_identity(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

// An output whose file or folder exists before the run.
struct Present {
  const OutputFile* output;
  std::optional<Identity> file;
  fs::path folder;  // canonical path; "" if the output is a file

  bool holds(const fs::path& path) const {
    if (folder.empty()) return false;
    std::error_code ignored;
    const fs::path real = fs::canonical(path, ignored);
    return std::mismatch(folder.begin(), folder.end(), real.begin(), real.end()).first ==
           folder.end();
  }
};

std::vector<Present> present_outputs(const std::vector<OutputFile>& outputs) {
  std::vector<Present> present;
  for (const OutputFile& each : outputs) {
    if (each.path.empty()) continue;
    Present found{&each, identity_of(each.path, STDOUT_FILENO), {}};
    std::error_code ignored;
    if (each.is_folder && fs::is_directory(each.path, ignored)) {
      found.folder = fs::canonical(each.path, ignored);
    }
    if (found.file || !found.folder.empty()) present.push_back(std::move(found));
  }
  return present;
}

std::string shown(const fs::path& path, const char* stream) {
  return path == "-" ? stream : quote(path.string());
}

[[noreturn]] void fail_same(const OutputFile& output, const char* flag, const fs::path& path) {
  throw Error(
      cat(output.flag, " and ", flag, " are the same file: ", shown(output.path, "standard output"),
          " and ", shown(path, "standard input")),
      cat("inputs are never written to: name another file for ", output.flag), ErrorKind::usage);
}

[[noreturn]] void fail_held(const OutputFile& output, const char* flag, const fs::path& path) {
  throw Error(cat(output.flag, " ", quote(output.path.string()), ": holds ", quote(path.string()),
                  ", which is read for ", flag),
              cat("inputs are never removed: name another folder for ", output.flag),
              ErrorKind::usage);
}

// Whether both paths are the same entry of one folder. A hard link to the file is another entry.
bool same_entry(const fs::path& a, const fs::path& b) {
  const fs::path parent = b.parent_path().empty() ? fs::path(".") : b.parent_path();
  std::error_code ignored;
  return a.filename() == b.filename() && fs::equivalent(a.parent_path(), parent, ignored);
}

// Whether the program wrote this output itself, so that an earlier run may have left it in an input
// folder.
bool is_own(const OutputFile& output) {
  return output.own || output.path.filename() == kDefaultScaleFile;
}

// The sorted entries of `folder`. Empty if it cannot be read: the command that reads it reports the
// error.
std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    entries.push_back(at->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

class Check {
 public:
  Check(const char* flag, const std::vector<Present>& outputs) : flag_(flag), outputs_(outputs) {}

  void file(const fs::path& path, bool in_folder) {
    const std::optional<Identity> identity = identity_of(path, STDIN_FILENO);
    if (!identity) return;
    for (const Present& each : outputs_) {
      const bool own = in_folder && is_own(*each.output) && same_entry(path, each.output->path);
      if (each.file == identity && !own) fail_same(*each.output, flag_, path);
      if (path != "-" && each.holds(path)) fail_held(*each.output, flag_, path);
    }
  }

  // Checks every file below `path`. Skips hidden folders, which no command reads. `seen_` ends
  // circles of links.
  void folder(const fs::path& path) {
    const std::optional<Identity> identity = folder_identity(path);
    if (!identity || !seen_.insert(*identity).second) return;
    for (const Present& each : outputs_) {
      if (each.holds(path)) fail_held(*each.output, flag_, path);
    }
    for (const fs::path& entry : sorted_entries(path)) {
      check_interrupt();
      std::error_code ignored;
      if (!fs::is_directory(entry, ignored)) {
        file(entry, true);
      } else if (!entry.filename().string().starts_with('.')) {
        folder(entry);
      }
    }
  }

 private:
  const char* flag_;
  const std::vector<Present>& outputs_;
  std::set<Identity> seen_;
};

// The refs folder of the hub's cache that belongs to a snapshot. Its files map a revision's name to
// a snapshot. Returns "" for any other path.
fs::path references_of(const fs::path& input) {
  std::error_code ignored;
  const fs::path snapshots = fs::canonical(input, ignored).parent_path();
  return snapshots.filename() == "snapshots" ? snapshots.parent_path() / "refs" : fs::path();
}

}  // namespace

void add_inputs(std::vector<InputPath>& inputs, const char* flag,
                const std::vector<fs::path>& paths) {
  for (const fs::path& path : paths) inputs.push_back({flag, path});
}

void check_inputs_kept(const std::vector<InputPath>& inputs,
                       const std::vector<OutputFile>& outputs) {
  const std::vector<Present> present = present_outputs(outputs);
  if (present.empty()) return;
  for (const InputPath& input : inputs) {
    if (input.path.empty()) continue;
    Check check(input.flag, present);
    check.file(input.path, false);
    if (input.path == "-") continue;
    check.folder(input.path);
    if (const fs::path references = references_of(input.path); !references.empty()) {
      check.folder(references);
    }
  }
}

}  // namespace fp8kv
