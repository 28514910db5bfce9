// Writes the scale file that scale_file.cpp reads.
#include <cstdint>

#include "base/error.h"
#include "core/scales/amax_scales.h"
#include "scales/draft_json.h"
#include "scales/identity_json.h"
#include "scales/scale_evidence.h"
#include "scales/scale_file.h"

namespace fp8kv {
namespace {

// The formats that scale files can hold. FNUZ scales are stored halved, as E4M3FN.
bool is_file_format(KvFormat format) {
  return format == KvFormat::e4m3fn || format == KvFormat::nvfp4;
}

// Begins the document: writes vLLM's part and leaves the object open.
void write_vllm_part(JsonWriter& out, const KvScales& scales, int64_t ranks) {
  FP8KV_ASSERT(is_file_format(scales.format) && !scales.layers.empty());
  out.begin_object().key("model_type");
  scales.model_type.empty() ? out.null() : out.value(scales.model_type);
  out.key("kv_cache").begin_object();
  out.member("dtype", format_name(scales.format));
  out.key("scaling_factor").begin_object();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    out.key(cat(rank)).begin_object();
    for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
      if (scales.layers[layer].has_cache()) {
        out.member(cat(layer), fused_scale(scales.layers[layer]));
      }
    }
    out.end_object();
  }
  out.end_object().end_object();
}

void write_text(JsonWriter& out, const char* name, const std::string& text) {
  if (!text.empty()) out.member(name, text);
}

void write_extension(JsonWriter& out, const KvScales& scales) {
  const Provenance& provenance = scales.provenance;
  out.key("fp8kv").begin_object();
  const bool sparse = scales.cached_layers() < scales.layers.size();
  out.member("schema", sparse ? kSparseScaleFileSchema : kScaleFileSchema);
  write_text(out, "tool_version", provenance.tool_version);
  write_text(out, "source", provenance.source);
  if (!provenance.producer.empty()) {
    out.key("producer").begin_object().member("name", provenance.producer);
    write_text(out, "version", provenance.producer_version);
    out.end_object();
  }
  write_text(out, "stored_dtype", provenance.stored_dtype);
  write_text(out, "observer", provenance.observer);
  out.member("format", format_name(scales.format));
  out.member("granularity", scales.per_head() ? "head" : "tensor");
  out.member("headroom", provenance.headroom);
  write_text(out, "policy", provenance.policy);
  write_text(out, "observation", observation_name(provenance.observation));
  write_text(out, "compute_dtype", provenance.compute_dtype);
  if (scales.latent) out.member("cache", kLatentCache);
  if (!scales.skipped.empty()) {
    out.member("skip_layers", std::span<const int64_t>(scales.skipped));
  }
  out.key("model").begin_object();
  write_text(out, "fingerprint", provenance.model_fingerprint);
  write_text(out, "accepted_foreign", provenance.accepted_foreign);
  if (!provenance.unknown_keys.empty()) {
    out.member("unknown_config_keys", std::span(provenance.unknown_keys));
  }
  write_text(out, "quantised_weights", provenance.weights_from);
  out.member("n_layers", uint64_t{scales.layers.size()});
  if (scales.n_kv_heads > 0) out.member("n_kv_heads", scales.n_kv_heads);
  if (!scales.layer_kv_heads.empty()) {
    out.member("layer_kv_heads", std::span<const int64_t>(scales.layer_kv_heads));
  }
  if (provenance.model_identity) write_identity(out.key("identity"), *provenance.model_identity);
  out.end_object();
  write_counted(out, provenance);
  write_rows(out, "k_scale", scales.layers, &LayerScales::k);
  write_rows(out, "v_scale", scales.layers, &LayerScales::v);
  if (has_q_scales(scales)) write_rows(out, "q_scale", scales.layers, &LayerScales::q);
  write_magnitudes(out, provenance);
  write_drafts(out, scales);
  out.end_object();
}

}  // namespace

std::string scale_file_text(const KvScales& scales) {
  JsonWriter out;
  write_vllm_part(out, scales, 1);
  write_extension(out, scales);
  return out.end_object().text();
}

std::string vllm_json_text(const KvScales& scales, int64_t ranks) {
  FP8KV_ASSERT(ranks > 0);
  JsonWriter out;
  write_vllm_part(out, scales, ranks);
  return out.end_object().text();
}

}  // namespace fp8kv
