// kv_cache_scales.json: vLLM's schema, with one "fp8kv" object beside it that carries everything
// else. Readers of the vLLM schema ignore unknown keys, so one file serves both. docs/scale-file.md
// specifies it. Version 2 is written only for models with layers that write no KV cache, so that
// readers of version 1 take all other files.
#pragma once

#include <filesystem>
#include <string>

#include "core/scales.h"
#include "json/json.h"

namespace fp8kv {

inline constexpr const char* kScaleFileSchema = "fp8kv.scales/1";
inline constexpr const char* kSparseScaleFileSchema = "fp8kv.scales/2";

// The whole file as text: the same scales give the same bytes. Parts that are not known are left
// out. REQUIRES e4m3fn scales (with_format converts) that check_values accepts.
std::string scale_file_text(const KvScales& scales);

// vLLM's schema alone, with the same scales for each of `ranks` tensor-parallel ranks: per layer
// the largest of K's and V's. REQUIRES what scale_file_text does, and ranks > 0.
std::string vllm_json_text(const KvScales& scales, int64_t ranks);

// Both our file and plain vLLM files. Throws, naming file and key, for anything missing, malformed
// or contradictory; a file without the `fp8kv` object gives provenance.source "vllm-json", and
// layers up to the last that it names.
KvScales read_scale_file(const std::filesystem::path& path);
KvScales parse_scale_file(const Json& document, const std::string& source);

// True when the document looks like a scale file rather than a config.
bool is_scale_file(const Json& document);

}  // namespace fp8kv
