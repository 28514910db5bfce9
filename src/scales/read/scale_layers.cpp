#include "scales/read/scale_layers.h"

#include <map>
#include <string>

#include "base/error.h"

namespace fp8kv {
namespace {

// The tensors of one layer, by what they scale.
struct LayerTensors {
  const ScaleTensor* k = nullptr;
  const ScaleTensor* v = nullptr;
  const ScaleTensor* both = nullptr;
};

void check_agreement(const LayerTensors& layer) {
  const ScaleTensor& from =
      largest(layer.k->values) >= largest(layer.v->values) ? *layer.k : *layer.v;
  const float apart = largest(from.values), together = largest(layer.both->values);
  if (together == apart || rounded_to(apart, layer.both->dtype) == together ||
      rounded_to(together, from.dtype) == apart) {
    return;
  }
  const bool doubled = together == 2 * apart || apart == 2 * together;
  throw Error(cat(quote(layer.both->name), " is ", together, ", ", quote(from.name), " is ", apart,
                  ": expected the same, as kv_scale is the maximum of K and V"),
              doubled ? "the one is exactly twice the other: it was made for FNUZ, and no config "
                        "says so; inject the original scales again"
                      : "they are from two calibrations: inject the right ones into the original "
                        "model again");
}

LayerScales layer_scales(const LayerTensors& layer) {
  if (!layer.k && !layer.v) return {layer.both->values, layer.both->values};
  if (!layer.k || !layer.v) {
    const ScaleTensor& found = layer.k ? *layer.k : *layer.v;
    fail(quote(found.name), ": the scale of ", layer.k ? "V" : "K", " for it is missing");
  }
  if (layer.both) check_agreement(layer);
  return {layer.k->values, layer.v->values};
}

// Throws if a layer with a cache is missing. Names the first few that are.
void check_complete(const std::map<size_t, LayerTensors>& layers, const StoredModel& model) {
  constexpr size_t kMostShown = 4;
  std::vector<std::string> missing;
  for (size_t layer = 0; layer < model.has_cache.size(); ++layer) {
    if (model.has_cache[layer] && !layers.contains(layer)) missing.push_back(cat(layer));
  }
  const size_t count = missing.size();
  if (count == 0) return;
  if (count > kMostShown) {
    missing.resize(kMostShown);
    missing.push_back(count_of(count - kMostShown, "other"));
  }
  const std::string gap = cat("has KV scales for ", count_of(layers.size(), "layer"),
                              ", but none for ", count == 1 ? "layer " : "layers ", join(missing));
  if (model.unclear) {
    throw Error(cat(gap, ", and which layers of the model write a KV cache is not known: ",
                    model.unclear->what()),
                model.unclear->help());
  }
  throw Error(gap, "a runtime would use 1 there without a word: calibrate again");
}

}  // namespace

std::vector<LayerScales> scales_by_layer(const std::vector<ScaleTensor>& tensors,
                                         const StoredModel& model) {
  const size_t n_layers = model.has_cache.size();
  std::map<size_t, LayerTensors> layers;
  for (const ScaleTensor& tensor : tensors) {
    const auto number = static_cast<size_t>(tensor.layer);
    if (number >= n_layers) {
      throw Error(
          cat(quote(tensor.name), ": there is no such layer, the model has ", n_layers),
          "the scales are those of another model, or of one that was pruned since: calibrate this "
          "one");
    }
    LayerTensors& layer = layers[number];
    (tensor.of == ScaleOf::k ? layer.k : tensor.of == ScaleOf::v ? layer.v : layer.both) = &tensor;
  }
  check_complete(layers, model);
  std::vector<LayerScales> scales(n_layers);
  for (const auto& [number, layer] : layers) scales[number] = layer_scales(layer);
  return scales;
}

}  // namespace fp8kv
