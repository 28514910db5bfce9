#include "scales/scale_names.h"

#include <utility>

#include "checkpoint/drafts/draft_layers.h"
#include "checkpoint/layer_name.h"

namespace fp8kv {
namespace {

// The part of the name behind the attention's, with its spelling.
constexpr std::pair<std::string_view, ScaleSpelling> kSpellings[] = {
    {"kv_scale", ScaleSpelling::fused},
    {"k_scale", ScaleSpelling::apart},
    {"v_scale", ScaleSpelling::apart},
    {"attn.k_scale", ScaleSpelling::parameter},
    {"attn.v_scale", ScaleSpelling::parameter},
    {"k_proj.k_scale", ScaleSpelling::projection},
    {"v_proj.v_scale", ScaleSpelling::projection},
    {"qkv_proj.k_scale", ScaleSpelling::projection},
    {"qkv_proj.v_scale", ScaleSpelling::projection},
    {"qkqkv_proj.k_scale", ScaleSpelling::projection},  // from loaders that stack Q, K and V twice
    {"qkqkv_proj.v_scale", ScaleSpelling::projection},
    {"k_proj.output_scale", ScaleSpelling::output},
    {"v_proj.output_scale", ScaleSpelling::output},
    {"qkv_proj.output_scale", ScaleSpelling::output},
    {"k_global_scale", ScaleSpelling::other},  // AutoRound's, for NVFP4
    {"v_global_scale", ScaleSpelling::other},
    {"q_scale", ScaleSpelling::query},
    {"attn.q_scale", ScaleSpelling::query},
    {"q_proj.q_scale", ScaleSpelling::query},
    {"k_cache.scale", ScaleSpelling::other},
    {"v_cache.scale", ScaleSpelling::other},
    {"attn.kv_scale", ScaleSpelling::other},
    {"k_zero_point", ScaleSpelling::other},
    {"v_zero_point", ScaleSpelling::other},
    {"k_proj.output_zero_point", ScaleSpelling::other},
    {"v_proj.output_zero_point", ScaleSpelling::other},
    {"k_proj.k_bias", ScaleSpelling::other},  // ModelOpt's affine quantisers
    {"v_proj.v_bias", ScaleSpelling::other},
    {"kv_cache_scaling_factor", ScaleSpelling::other},
};

}  // namespace

std::optional<ScaleSpelling> scale_spelling(std::string_view tensor) {
  const auto parts = split_layer_name(tensor);
  const auto name = parts ? in_attention(parts->rest) : std::nullopt;
  for (const auto& [rest, spelling] : kSpellings) {
    if (name == rest) return spelling;
  }
  return std::nullopt;
}

std::optional<ScaleSpelling> kv_scale_spelling(std::string_view tensor) {
  const auto spelling = scale_spelling(tensor);
  return spelling == ScaleSpelling::query ? std::nullopt : spelling;
}

std::vector<std::string> kv_scale_names(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (scale_spelling(name)) names.push_back(name);
  }
  return names;
}

void drop_draft_scales(TensorMap& tensors, const Json& config) {
  const std::vector<DraftLayer> drafts = find_draft_layers(tensors, config);
  if (drafts.empty()) return;
  std::erase_if(tensors, [&](const auto& tensor) {
    return scale_spelling(tensor.first) && draft_of(drafts, tensor.first) < drafts.size();
  });
}

}  // namespace fp8kv
