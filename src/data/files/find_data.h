// Which files are meant by what is typed for --data: files, folders and patterns.
// Reads none of them.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/log.h"

namespace fp8kv {

// Each file, "-" and each path that is not there stands for itself. A folder is all files of known
// kinds below it, a pattern (*, ? and [...]) all files whose path fits, each in the order of their
// paths; hidden ones and what describes a data set are left out. What a folder has besides is said
// on `log`. Throws for a folder without data and for a pattern that nothing fits.
std::vector<std::filesystem::path> find_data(std::span<const std::filesystem::path> named,
                                             Log& log);

}  // namespace fp8kv
