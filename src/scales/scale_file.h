// kv_cache_scales.json: vLLM's schema, with one more object "fp8kv" that carries everything else.
// Readers of the vLLM schema ignore unknown keys, so one file serves both. docs/scale-file.md is
// the specification. Only models with layers that write no KV cache get version 2, so readers of
// version 1 can read all other files.
#pragma once

#include <filesystem>
#include <string>

#include "core/scales/scales.h"
#include "json/json.h"

namespace fp8kv {

inline constexpr const char* kScaleFileSchema = "fp8kv.scales/1";
inline constexpr const char* kSparseScaleFileSchema = "fp8kv.scales/2";
// The member `cache` of models that cache latents.
inline constexpr const char* kLatentCache = "latent";

// Returns the whole file as text: equal scales give equal bytes. Leaves out unknown parts. REQUIRES
// e4m3fn scales (with_format converts) that check_values accepts.
std::string scale_file_text(const KvScales& scales);

// Returns vLLM's schema alone, with the same scales for each of `ranks` tensor-parallel ranks. A
// layer gets one number: the largest scale of its K and V. REQUIRES the same as scale_file_text,
// and ranks > 0.
std::string vllm_json_text(const KvScales& scales, int64_t ranks);

// Read our own files and plain vLLM files. Throw, naming file and key, for anything missing,
// malformed or contradictory. A file without the `fp8kv` object gets provenance.source "vllm-json",
// and its layers end with the last one it names.
KvScales read_scale_file(const std::filesystem::path& path);
KvScales parse_scale_file(const Json& document, const std::string& source);

// Whether the document looks like a scale file rather than a config.
bool is_scale_file(const Json& document);

}  // namespace fp8kv
