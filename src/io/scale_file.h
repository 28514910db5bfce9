// kv_cache_scales.json: vLLM's schema, with one "fp8kv" object beside it that carries everything
// else. Readers of the vLLM schema ignore unknown keys, so one file serves both.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"
#include "core/scales.h"

namespace fp8kv {

inline constexpr const char* kScaleFileSchema = "fp8kv.scales/1";

// The whole file as text. `scaling_factor` holds one rank, "0", with max(K, V) per layer.
// REQUIRES e4m3fn scales (with_format converts).
std::string scale_file_text(const KvScales& scales);

// Both our file and plain vLLM files (any number of ranks, which must agree). Throws, naming file
// and key, for anything missing, malformed, or contradictory.
KvScales read_scale_file(const std::filesystem::path& path);
KvScales parse_scale_file(const Json& document, const std::string& source);

// True when the document looks like a scale file rather than a config.
bool is_scale_file(const Json& document);

}  // namespace fp8kv
