// Optional files of settings beside a model.
#pragma once

#include <filesystem>
#include <optional>

#include "json/json.h"

namespace fp8kv {

// The object in the file; nullopt if there is no file. Throws like Json::read. Throws if the file
// is not an object: it would look like a file without any settings.
std::optional<Json> find_object(const std::filesystem::path& path,
                                JsonNumbers numbers = JsonNumbers::finite,
                                uint64_t max_bytes = uint64_t(1) << 30);

}  // namespace fp8kv
