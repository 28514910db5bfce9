#include "scales/verify/folder_scales.h"

#include <map>

#include "base/error.h"
#include "checkpoint/describe_checkpoint.h"
#include "checkpoint/layer_name.h"
#include "scales/dialects.h"
#include "scales/scale_names.h"
#include "scales/scale_rounding.h"
#include "scales/scale_tensors.h"

namespace fp8kv {
namespace {

bool is_scale(const std::string& name) {
  const auto spelling = scale_spelling(name);
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

void add_scale(LayerOnDisk& layer, NamedScale scale) {
  if (layer.unusable.empty()) layer.unusable = why_unusable(scale);
  layer.scales.push_back(std::move(scale));
}

}  // namespace

size_t ScalesOnDisk::scale_count() const {
  size_t count = 0;
  for (const LayerOnDisk& layer : layers) count += layer.scales.size();
  return count;
}

ScalesOnDisk scales_on_disk(const Checkpoint& checkpoint) {
  const ModelFiles files = model_files(checkpoint);
  const ModelDescription model = describe_model(checkpoint);
  const std::vector<bool> has_cache = layers_with_cache(model);
  ScalesOnDisk found;
  found.facts = runtime_facts(files);
  found.dtype = serving_dtype(checkpoint);
  found.layers_known = !model.unclear;
  std::map<int64_t, LayerOnDisk> layers;
  for (size_t i = 0; found.layers_known && i < has_cache.size(); ++i) {
    if (has_cache[i]) layers[static_cast<int64_t>(i)] = {};
  }
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (!is_scale(name)) continue;
    const int64_t number = split_layer_name(name)->layer;
    // Nothing reads a scale of a layer without a cache.
    if (found.layers_known && !layers.contains(number)) continue;
    const TensorEntry& entry = location.entry;
    NamedScale scale{name, {}};
    if (is_readable_scale(entry.dtype, entry.shape)) {
      scale.values = scale_numbers(checkpoint.read(name), entry.dtype);
    }
    add_scale(layers[number], std::move(scale));
  }
  for (auto& [number, layer] : layers) {
    layer.layer = number;
    layer.facts = layer_facts(files, found.facts, number);
    found.layers.push_back(std::move(layer));
  }
  return found;
}

ScalesOnDisk scales_on_disk(const KvScales& scales) {
  KvScales one = scales;
  for (LayerScales& layer : one.layers) {
    if (layer.has_cache()) layer = {{fused_scale(layer)}, {}};
  }
  return planned_scales(one, scale_file_facts(scales.model_type), std::nullopt);
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
