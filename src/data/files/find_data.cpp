#include "data/files/find_data.h"

#include <algorithm>
#include <array>
#include <glob.h>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/interrupt.h"
#include "data/files/data_kind.h"
#include "data/files/data_split.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

// Files that the datasets library writes beside the data, to describe it.
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
    } else if (std::error_code ignored; fs::is_regular_file(*at, ignored) ||
                                        (at->is_symlink() && !fs::exists(*at, ignored))) {
      is_data_name(*at) ? found.data.push_back(at->path()) : void(++found.others);
    }
  }
  if (error) fail_system(folder.string(), "read", error.value());
  std::sort(found.data.begin(), found.data.end());
  return found;
}

// Throws for dangling links. In the hub's cache, a blob is missing while it is being fetched.
void check_links(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) {
    std::error_code ignored;
    if (fs::exists(file, ignored)) continue;
    throw Error(cat(quote(file.string()), ": is a link to a file that is not there"),
                "fetch the data set again");
  }
}

std::string names_of_splits(const std::set<std::string>& splits) {
  std::vector<std::string> names;
  for (const std::string& split : splits) names.push_back(quote(split));
  return names.empty() ? "none" : join(names);
}

// The files of `data` that belong to `split`; see find_data.
std::vector<fs::path> files_of_split(const fs::path& folder, std::vector<fs::path> data,
                                     const std::string& split) {
  std::set<std::string> splits;
  std::vector<fs::path> chosen;
  bool all_of_splits = true;
  for (const fs::path& file : data) {
    const std::string of = split_of(file.lexically_relative(folder));
    of.empty() ? void(all_of_splits = false) : void(splits.insert(of));
    if (of == split_name(split)) chosen.push_back(file);
  }
  if (split.empty()) {
    if (!all_of_splits || splits.size() < 2) return data;
    throw Error(
        cat(quote(folder.string()), ": is a data set of the splits ", names_of_splits(splits)),
        cat("pass --split, for instance --split ", *splits.rbegin(),
            ", or name files by a pattern"),
        ErrorKind::usage);
  }
  if (!chosen.empty()) return chosen;
  throw Error(cat(quote(folder.string()), ": has no split ", quote(split), ", has ",
                  names_of_splits(splits)),
              "a split is named by its files: train-00000-of-00002.parquet, test.jsonl");
}

void add_folder(const fs::path& named, const std::string& split, std::vector<fs::path>& files,
                Log& log) {
  std::error_code ignored;
  const bool of_mistral =
      fs::exists(named / "params.json", ignored) && fs::exists(named / "tekken.json", ignored);
  if (fs::exists(named / "config.json", ignored) || of_mistral) {
    throw Error(cat(quote(named.string()), ": is the folder of a model, expected data"),
                "name a file, or a folder of such files");
  }
  const fs::path folder = dataset_folder(named);
  FolderFiles found = files_below(folder);
  if (found.data.empty()) {
    throw Error(cat(quote(folder.string()), ": has no data: ", count_of(found.others, "file"),
                    ", none of them ", data_kind_list()),
                "name the file if it is text under another name");
  }
  const uint64_t all = found.data.size();
  found.data = files_of_split(folder, std::move(found.data), split);
  check_links(found.data);
  std::string line =
      cat(quote(folder.string()), ": ", count_of(found.data.size(), "file"), " of data");
  if (all > found.data.size()) line += cat(" of ", grouped(all));
  if (found.others > 0) line += cat(", and ", grouped(found.others), " that are not");
  log.note(line);
  files.insert(files.end(), found.data.begin(), found.data.end());
}

bool is_pattern(const fs::path& path) {
  return path.string().find_first_of("*?[") != std::string::npos;
}

void add_pattern(const fs::path& pattern, const std::string& split, std::vector<fs::path>& files,
                 Log& log) {
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
      add_folder(path, split, files, log);
    } else {
      files.push_back(path);
    }
  }
}

}  // namespace

std::vector<fs::path> find_data(std::span<const fs::path> named, const std::string& split,
                                Log& log) {
  const bool has_folder = std::any_of(named.begin(), named.end(), [](const fs::path& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored) || is_pattern(path);
  });
  if (!split.empty() && !named.empty() && !has_folder) {
    throw Error(cat("--split ", split, ": only folders have splits, and there is none"),
                "name the folder of the data set, or leave out --split", ErrorKind::usage);
  }
  std::vector<fs::path> files;
  for (const fs::path& path : named) {
    std::error_code ignored;
    if (path != "-" && fs::is_directory(path, ignored)) {
      add_folder(path, split, files, log);
    } else if (path != "-" && is_pattern(path) && !fs::exists(path, ignored)) {
      add_pattern(path, split, files, log);
    } else {
      files.push_back(path);
    }
  }
  return files;
}

}  // namespace fp8kv
