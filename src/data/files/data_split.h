// Splits of data sets (train, validation, test), by the names of their files, and where the hub's
// cache keeps a data set.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fp8kv {

// "train", "validation" and "test" for each of their other names ("valid", "dev", "eval" ...); any
// other name as it is.
std::string split_name(std::string_view name);

// Which split a file is of, by its path within the data set: NAME of NAME-00000-of-00002.parquet,
// else the first word of its folders and its name that names one; "" where none does.
// Source: datasets 4.4, data_files.py, SPLIT_KEYWORDS and the patterns below it.
std::string split_of(const std::filesystem::path& path);

// For an entry of the hub's cache, datasets--org--name, the snapshot of its revision main, or the
// only one; else `folder`. Throws where there are several and none is main.
std::filesystem::path dataset_folder(const std::filesystem::path& folder);

}  // namespace fp8kv
