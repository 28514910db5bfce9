// Recognises the splits of data sets (train, validation, test) by file names, and finds a data set
// in the hub's cache.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fp8kv {

// Returns "train", "validation" or "test" for each of their other names ("valid", "dev", "eval"
// ...), and any other name unchanged.
std::string split_name(std::string_view name);

// The split of a file by its path within the data set. It is NAME for NAME-00000-of-00002.parquet,
// else the first word in its folders and name that names a split; "" if none does.
// Source: datasets 4.4, data_files.py, SPLIT_KEYWORDS and the patterns below it.
std::string split_of(const std::filesystem::path& path);

// For an entry of the hub's cache, datasets--org--name: the snapshot of its `main` revision, or the
// only snapshot. Any other `folder` is returned unchanged. Throws for several snapshots without
// `main`.
std::filesystem::path dataset_folder(const std::filesystem::path& folder);

}  // namespace fp8kv
