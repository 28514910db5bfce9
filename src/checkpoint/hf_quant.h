// Reads the hf_quant_config.json that ModelOpt writes beside config.json. Does not interpret it.
#pragma once

#include <filesystem>
#include <optional>

#include "json/json.h"

namespace fp8kv {

inline constexpr const char* kModelOptFile = "hf_quant_config.json";

// Reads the hf_quant_config.json of a folder; nullopt if there is none.
std::optional<Json> read_hf_quant(const std::filesystem::path& folder);

}  // namespace fp8kv
