#include "show/scales/draft_text.h"

#include <algorithm>
#include <span>

#include "base/text.h"
#include "show/output.h"
#include "show/scales/scales_text.h"

namespace fp8kv {
namespace {

bool has_scales(const DraftLayer& layer, const KvScales& scales) {
  return std::any_of(scales.drafts.begin(), scales.drafts.end(),
                     [&](const DraftScales& draft) { return draft.layer == layer.name; });
}

}  // namespace

std::string draft_layers_text(const std::vector<DraftLayer>& layers, const KvScales& scales) {
  if (layers.empty()) return "";
  std::vector<std::string> names;
  for (const DraftLayer& layer : layers) {
    names.push_back(cat(plain(layer.name), has_scales(layer, scales) ? "" : ", no scales"));
  }
  return described("draft layers",
                   cat(layers.size(), ", with a KV cache each: ", join(names, "; ")));
}

void draft_layers_json(JsonWriter& json, const std::vector<DraftLayer>& layers,
                       const KvScales& scales) {
  if (layers.empty()) return;
  json.key("draft_layers").begin_array();
  for (const DraftLayer& layer : layers) {
    json.begin_object().member("layer", layer.name);
    json.member("kind", std::string(layer.kind->name));
    json.member("scales", has_scales(layer, scales)).end_object();
  }
  json.end_array();
}

void drafts_json(JsonWriter& json, const std::vector<DraftScales>& drafts) {
  if (drafts.empty()) return;
  json.key("draft_layers").begin_array();
  for (const DraftScales& draft : drafts) {
    json.begin_object().member("layer", draft.layer);
    json.member("k_scale", std::span<const float>(draft.scales.k));
    json.member("v_scale", std::span<const float>(draft.scales.v));
    json.member("k_amax", std::span<const float>(draft.amax.k));
    json.member("v_amax", std::span<const float>(draft.amax.v));
    json.member("q_amax", std::span<const float>(draft.amax.q)).end_object();
  }
  json.end_array();
}

}  // namespace fp8kv
