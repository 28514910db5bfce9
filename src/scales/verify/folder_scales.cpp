#include "scales/verify/folder_scales.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "checkpoint/describe_checkpoint.h"
#include "checkpoint/drafts/draft_layers.h"
#include "checkpoint/layer_name.h"
#include "config/describe/assistants.h"
#include "scales/dialects.h"
#include "scales/scale_names.h"
#include "scales/scale_rounding.h"
#include "scales/scale_tensors.h"

namespace fp8kv {
namespace {

bool is_scale(const std::string& name) {
  const auto spelling = kv_scale_spelling(name);
  return spelling && !is_offset(name);
}

std::string why_unusable(const NamedScale& scale) {
  for (const float value : scale.values) {
    try {
      check_scale(value, scale.name);
    } catch (const Error& error) {
      return error.what();
    }
  }
  return "";
}

template <typename Layer>
void add_scale(Layer& layer, NamedScale scale) {
  if (layer.unusable.empty()) layer.unusable = why_unusable(scale);
  layer.scales.push_back(std::move(scale));
}

NamedScale read_scale(const Checkpoint& checkpoint, const std::string& name,
                      const TensorEntry& entry) {
  NamedScale scale{name, {}};
  if (is_readable_scale(entry.dtype, entry.shape)) {
    scale.values = scale_numbers(checkpoint.read(name), entry.dtype);
  }
  return scale;
}

std::vector<DraftOnDisk> drafts_on_disk(const Checkpoint& checkpoint,
                                        const std::vector<DraftLayer>& layers, bool latent) {
  std::vector<DraftOnDisk> drafts;
  for (const DraftLayer& layer : layers) drafts.push_back({{layer, latent}, {}, ""});
  for (const auto& [name, location] : checkpoint.tensors()) {
    const size_t place = is_scale(name) ? draft_of(layers, name) : layers.size();
    if (place == layers.size()) continue;
    add_scale(drafts[place], read_scale(checkpoint, name, location.entry));
    std::vector<ScaleSpelling>& spellings = drafts[place].facts.spellings;
    const ScaleSpelling spelling = *scale_spelling(name);
    if (std::find(spellings.begin(), spellings.end(), spelling) == spellings.end()) {
      spellings.push_back(spelling);
    }
  }
  return drafts;
}

bool is_latent(const ModelDescription& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const LayerDescription& layer) { return layer.v_in_k; });
}

}  // namespace

size_t ScalesOnDisk::scale_count() const {
  size_t count = 0;
  for (const LayerOnDisk& layer : layers) count += layer.scales.size();
  return count;
}

ScalesOnDisk scales_on_disk(const Checkpoint& checkpoint) {
  if (const auto why = reads_other_cache(checkpoint.config())) throw *why;
  const ModelFiles files = model_files(checkpoint);
  const ModelDescription model = describe_model(checkpoint);
  const std::vector<bool> has_cache = layers_with_cache(model);
  ScalesOnDisk found;
  found.facts = runtime_facts(files);
  found.dtype = serving_dtype(checkpoint);
  found.layers_known = !model.unclear;
  const std::vector<DraftLayer> drafts =
      find_draft_layers(checkpoint.tensors(), checkpoint.config());
  found.drafts = drafts_on_disk(checkpoint, drafts, is_latent(model));
  std::map<int64_t, LayerOnDisk> layers;
  for (size_t i = 0; found.layers_known && i < has_cache.size(); ++i) {
    if (has_cache[i]) layers[static_cast<int64_t>(i)] = {};
  }
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (!is_scale(name) || draft_of(drafts, name) < drafts.size()) continue;
    const int64_t number = split_layer_name(name)->layer;
    // No runtime reads a scale of a layer without a cache.
    if (found.layers_known && !layers.contains(number)) continue;
    add_scale(layers[number], read_scale(checkpoint, name, location.entry));
  }
  for (auto& [number, layer] : layers) {
    layer.layer = number;
    layer.facts = layer_facts(files, found.facts, number);
    found.layers.push_back(std::move(layer));
  }
  return found;
}

ScalesOnDisk scales_on_disk(const KvScales& scales) {
  if (is_nvfp4(scales.format)) {
    throw Error("is a scale file for nvfp4, which no runtime reads",
                "'fp8kv run' and 'fp8kv eval' compute with it");
  }
  KvScales one = scales;
  for (LayerScales& layer : one.layers) {
    if (layer.has_cache()) layer = {{fused_scale(layer)}, {}};
  }
  ScalesOnDisk found = planned_scales(one, scale_file_facts(scales.model_type), std::nullopt);
  for (const DraftScales& draft : scales.drafts) {
    DraftOnDisk on_disk{{{draft.layer}, scales.latent}, {}, ""};
    for (const std::vector<float>* values : {&draft.scales.k, &draft.scales.v}) {
      add_scale(on_disk, {"", *values});
    }
    found.drafts.push_back(std::move(on_disk));
  }
  return found;
}

ScalesOnDisk planned_scales(const KvScales& scales, FactSet facts, std::optional<DType> dtype) {
  ScalesOnDisk found{facts, {}, dtype};
  for (size_t i = 0; i < scales.layers.size(); ++i) {
    if (!scales.layers[i].has_cache()) continue;
    LayerOnDisk layer{static_cast<int64_t>(i), {}, facts, ""};
    for (const std::vector<float>* values : {&scales.layers[i].k, &scales.layers[i].v}) {
      if (!values->empty()) add_scale(layer, {"", *values});
    }
    found.layers.push_back(std::move(layer));
  }
  return found;
}

}  // namespace fp8kv
