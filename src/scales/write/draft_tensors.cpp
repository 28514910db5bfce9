#include "scales/write/draft_tensors.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/drafts/draft_layers.h"
#include "checkpoint/layer_name.h"
#include "scales/rules/draft_rules.h"

namespace fp8kv {
namespace {

std::vector<DraftLayer> drafts_in(const Checkpoint& checkpoint) {
  return find_draft_layers(checkpoint.tensors(), checkpoint.config());
}

// The attention of a draft layer: the name part behind the layer's, and its kind.
struct DraftAttention {
  std::string block;  // "self_attn."
  bool latent = false;
};

DraftAttention attention_of(const Checkpoint& checkpoint, const DraftLayer& layer) {
  const std::string begin = layer.name + ".";
  const TensorMap& tensors = checkpoint.tensors();
  DraftAttention found;
  for (auto at = tensors.lower_bound(begin); at != tensors.end() && at->first.starts_with(begin);
       ++at) {
    const std::string_view rest = rest_in(layer, at->first);
    const auto name = in_attention(rest);
    if (!name) continue;
    found.block = rest.substr(0, rest.size() - name->size());
    found.latent = found.latent || name->starts_with("kv_a_proj_with_mqa.");
  }
  return found;
}

const DraftScales* find_scales(const KvScales& scales, const DraftLayer& layer) {
  const auto found = std::find_if(scales.drafts.begin(), scales.drafts.end(),
                                  [&](const auto& draft) { return draft.layer == layer.name; });
  return found == scales.drafts.end() ? nullptr : &*found;
}

}  // namespace

std::vector<DraftTensor> draft_tensors(const Checkpoint& checkpoint, const KvScales& scales,
                                       const InjectTarget& target) {
  std::vector<DraftTensor> tensors;
  if (!target.drafts || is_nvfp4(scales.format)) return tensors;
  for (const DraftLayer& layer : drafts_in(checkpoint)) {
    const DraftScales* draft = find_scales(scales, layer);
    if (!draft) continue;
    const auto [block, latent] = attention_of(checkpoint, layer);
    const bool by_projection = draft_spelling(latent) == ScaleSpelling::projection;
    const std::string at = cat(layer.name, ".", block);
    tensors.push_back({at + (by_projection ? "k_proj.k_scale" : "attn.k_scale"), draft->scales.k});
    tensors.push_back({at + (by_projection ? "v_proj.v_scale" : "attn.v_scale"), draft->scales.v});
  }
  return tensors;
}

std::vector<std::string> drafts_left_out(const Checkpoint& checkpoint, const KvScales& scales,
                                         const InjectTarget& target) {
  const std::vector<DraftLayer> layers = drafts_in(checkpoint);
  std::vector<std::string> notes;
  for (const DraftScales& draft : scales.drafts) {
    const bool known = std::any_of(layers.begin(), layers.end(), [&](const DraftLayer& layer) {
      return layer.name == draft.layer;
    });
    const bool nvfp4 = is_nvfp4(scales.format);
    if (known && target.drafts && !nvfp4) continue;
    const std::string why = !known           ? "the model has no such layer"
                            : !target.drafts ? cat(target.runtime, " has no draft layers")
                                             : "no loader of draft layers was run with NVFP4";
    notes.push_back(cat("the scales of the draft layer ", draft.layer, " are left out: ", why));
  }
  return notes;
}

std::vector<std::string> drafts_at_one(const Checkpoint& checkpoint, const KvScales& scales) {
  std::vector<std::string> warnings;
  for (const DraftLayer& layer : drafts_in(checkpoint)) {
    if (find_scales(scales, layer)) continue;
    warnings.push_back(cat("the draft layer ", layer.name,
                           " gets no scales: when it drafts tokens, its FP8 cache runs with 1; ",
                           "'fp8kv calibrate' measures it where it can"));
  }
  return warnings;
}

}  // namespace fp8kv
