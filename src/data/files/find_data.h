// Resolves the arguments of --data: files, folders and patterns. Reads no data.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"

namespace fp8kv {

// A file, "-" or a path that does not exist stands for itself. A folder stands for all files of
// known kinds below it, and a pattern (*, ? and [...]) for all files whose path fits. Both are
// sorted by path. Hidden files and descriptions of a data set are left out. An entry of the hub's
// cache stands for its snapshot; see dataset_folder. Other files in a folder are named on `log`.
//
// From folders, only the files of `split` are taken; "": all files, if they belong to one split.
//
// Throws for a folder without data, without that split or, for "", with several splits and nothing
// else. Throws for a split without any folder, and for a pattern that nothing fits.
std::vector<std::filesystem::path> find_data(std::span<const std::filesystem::path> named,
                                             const std::string& split, Log& log);

}  // namespace fp8kv
