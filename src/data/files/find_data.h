// Which files are meant by what is typed for --data: files, folders and patterns.
// Reads none of them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"

namespace fp8kv {

// Each file, "-" and each path that is not there stands for itself. A folder is all files of known
// kinds below it, a pattern (*, ? and [...]) all files whose path fits, each in the order of their
// paths; hidden ones and what describes a data set are left out. What a folder has besides is said
// on `log`. Of an entry of the hub's cache it is the snapshot; see dataset_folder.
// Of folders only the files of `split` are taken; "": all, where they are of one split.
// Throws for a folder without data, without that split or, for "", with several splits and nothing
// else; for a split where there is no folder; and for a pattern that nothing fits.
std::vector<std::filesystem::path> find_data(std::span<const std::filesystem::path> named,
                                             const std::string& split, Log& log);

}  // namespace fp8kv
