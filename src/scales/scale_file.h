// kv_cache_scales.json: vLLM's schema, with one "fp8kv" object beside it that carries everything
// else. Readers of the vLLM schema ignore unknown keys, so one file serves both.
//
// A scale file is one JSON object (RFC 8259, UTF-8). A scale is a dequantisation multiplier:
// real = code * scale; a positive, finite, normal f32, written so that it reads back bit for bit.
//   model_type      MUST be there; a string, or null where it is not known.
//   kv_cache.dtype  MUST be "float8_e4m3fn"; runtimes on FNUZ hardware double the scales
//   themselves. kv_cache.scaling_factor  MUST map every rank "0" ... "R-1" to a map of every layer
//   "0" ... "L-1"
//       to one number, the maximum over K and V of all heads. A writer SHOULD write one rank;
//       several MUST agree.
// The object `fp8kv` MAY be absent: then the one number of a layer is the scale of K and of V. In
// it
//   schema          MUST be "fp8kv.scales/1"; format MUST equal kv_cache.dtype.
//   granularity     MUST be "tensor" (one scale a layer) or "head" (one for each KV head), and
//   k_scale, v_scale  MUST hold one array per layer of that many scales; they MUST agree with
//       scaling_factor, and with model {fingerprint, n_layers, n_kv_heads} where that is there.
//   octaves {k, v}  MAY be there: one array per layer, all KV heads together, of whole numbers:
//       [zeros, e, n0, n1, ...], where zeros counts |x| < 2^-39 and ni counts 2^(e+i) <= |x| <
//       2^(e+i+1), the last also what is above 2^24. The last ni MUST hold the layer's amax.
//   counted.shards {of, taken [indices], documents, windows, tokens}  MUST be there when only
//       every of-th window was counted, from those taken; the three numbers are of all windows.
//       A document is counted with its first window.
//   source  MAY be there: what made the scales, or the dialect of the checkpoint they were read
//       from (dialects.h). Of that checkpoint, where it tells: producer {name, version},
//       stored_dtype as in safetensors ("BF16") and observer as in compressed-tensors
//       ("static_minmax").
//   policy  MAY be there: how the scales were made from the magnitudes, as `calibrate --policy`
//       spells it, where granularity and headroom (the largest magnitude times that) do not say it.
//   tool_version, headroom, observation ("post_rope" or "pre_rope"), compute_dtype, model,
//   counted {documents, windows, tokens, data [{name, bytes, sha256}]} and
//   amax {k, v, q} (one array per layer, one maximum per KV head)  MAY be there.
// A reader MUST ignore keys it does not know, at any level.
#pragma once

#include <filesystem>
#include <string>

#include "core/scales.h"
#include "json/json.h"

namespace fp8kv {

inline constexpr const char* kScaleFileSchema = "fp8kv.scales/1";

// The whole file as text: the same scales give the same bytes. Parts that are not known are left
// out. REQUIRES e4m3fn scales (with_format converts) that check_values accepts.
std::string scale_file_text(const KvScales& scales);

// vLLM's schema alone, with the same scales for each of `ranks` tensor-parallel ranks: per layer
// the largest of K's and V's. REQUIRES what scale_file_text does, and ranks > 0.
std::string vllm_json_text(const KvScales& scales, int64_t ranks);

// Both our file and plain vLLM files. Throws, naming file and key, for anything missing, malformed
// or contradictory; a file without the `fp8kv` object gives provenance.source "vllm-json".
KvScales read_scale_file(const std::filesystem::path& path);
KvScales parse_scale_file(const Json& document, const std::string& source);

// True when the document looks like a scale file rather than a config.
bool is_scale_file(const Json& document);

}  // namespace fp8kv
