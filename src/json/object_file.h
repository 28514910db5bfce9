// Files of settings beside a model, each of which may be absent.
#pragma once

#include <filesystem>
#include <optional>

#include "json/json.h"

namespace fp8kv {

// What the file holds; nullopt where there is none. Throws as Json::read does, and for what is no
// object: no setting would be found in it, as if nobody had set any.
std::optional<Json> find_object(const std::filesystem::path& path,
                                JsonNumbers numbers = JsonNumbers::finite,
                                uint64_t max_bytes = uint64_t(1) << 30);

}  // namespace fp8kv
