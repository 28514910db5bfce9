#include "data/files/find_data.h"

#include <algorithm>
#include <array>
#include <glob.h>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/interrupt.h"
#include "data/files/data_kind.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

// What the datasets library writes about data beside it.
constexpr std::array<std::string_view, 4> kAboutData = {"dataset_dict.json", "dataset_info.json",
                                                        "dataset_infos.json", "state.json"};

bool is_data_name(const fs::path& path) {
  const std::string name = path.filename().string();
  return data_kind(path) != DataKind::unknown &&
         std::find(kAboutData.begin(), kAboutData.end(), name) == kAboutData.end();
}

struct FolderFiles {
  std::vector<fs::path> data;
  uint64_t others = 0;
};

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

FolderFiles files_below(const fs::path& folder) {
  FolderFiles found;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    check_interrupt();
    if (is_hidden(*at)) {
      at.disable_recursion_pending();
    } else if (std::error_code ignored; fs::is_regular_file(*at, ignored)) {
      is_data_name(*at) ? found.data.push_back(at->path()) : void(++found.others);
    }
  }
  if (error) fail_system(folder.string(), "read", error.value());
  std::sort(found.data.begin(), found.data.end());
  return found;
}

void add_folder(const fs::path& folder, std::vector<fs::path>& files, Log& log) {
  std::error_code ignored;
  if (fs::exists(folder / "config.json", ignored)) {
    throw Error(cat(quote(folder.string()), ": is the folder of a model, expected data"),
                "name a file, or a folder of such files");
  }
  FolderFiles found = files_below(folder);
  if (found.data.empty()) {
    throw Error(cat(quote(folder.string()), ": has no data: ", count_of(found.others, "file"),
                    ", none of them ", data_kind_list()),
                "name the file if it is text under another name");
  }
  std::string line =
      cat(quote(folder.string()), ": ", count_of(found.data.size(), "file"), " of data");
  if (found.others > 0) line += cat(", and ", grouped(found.others), " that are not");
  log.note(line);
  files.insert(files.end(), found.data.begin(), found.data.end());
}

bool is_pattern(const fs::path& path) {
  return path.string().find_first_of("*?[") != std::string::npos;
}

void add_pattern(const fs::path& pattern, std::vector<fs::path>& files, Log& log) {
  glob_t found{};
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<fs::path> paths;
  for (size_t i = 0; result == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (result == GLOB_NOSPACE) {
    throw Error(cat(quote(pattern.string()), ": out of memory"), "", ErrorKind::resource);
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) {
    throw Error(cat(quote(pattern.string()), ": no file fits this pattern"), "check the path");
  }
  for (const fs::path& path : paths) {
    if (std::error_code ignored; fs::is_directory(path, ignored)) {
      add_folder(path, files, log);
    } else {
      files.push_back(path);
    }
  }
}

}  // namespace

std::vector<fs::path> find_data(std::span<const fs::path> named, Log& log) {
  std::vector<fs::path> files;
  for (const fs::path& path : named) {
    std::error_code ignored;
    if (path != "-" && fs::is_directory(path, ignored)) {
      add_folder(path, files, log);
    } else if (path != "-" && is_pattern(path) && !fs::exists(path, ignored)) {
      add_pattern(path, files, log);
    } else {
      files.push_back(path);
    }
  }
  return files;
}

}  // namespace fp8kv
