// Reads the records of a file of items: JSON lines, JSON, or Parquet with all its columns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "json/json.h"

namespace fp8kv {

// Calls `visit` with the records of `path` until it returns false. Throws if the file cannot be
// read or is plain text, and for a broken record, with its line or row.
void for_each_item(const std::filesystem::path& path,
                   const std::function<bool(const Json& record)>& visit);

}  // namespace fp8kv
