#include "scales/read/scale_layers.h"

#include <map>
#include <string>

#include "base/error.h"

namespace fp8kv {
namespace {

// The tensors of one layer, by what they are for.
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

// The layers below `n_layers` that are not in `layers`, the first few by number.
std::string missing_layers(const std::map<int64_t, LayerTensors>& layers, int64_t n_layers) {
  constexpr size_t kMostShown = 4;
  std::vector<std::string> missing;
  for (int64_t layer = 0; layer < n_layers && missing.size() < kMostShown; ++layer) {
    if (!layers.contains(layer)) missing.push_back(cat(layer));
  }
  const int64_t count = n_layers - static_cast<int64_t>(layers.size());
  const int64_t others = count - static_cast<int64_t>(missing.size());
  if (others > 0) missing.push_back(count_of(static_cast<uint64_t>(others), "other"));
  return cat(count == 1 ? "layer " : "layers ", join(missing));
}

}  // namespace

std::vector<LayerScales> scales_by_layer(const std::vector<ScaleTensor>& tensors,
                                         int64_t n_layers) {
  std::map<int64_t, LayerTensors> layers;
  for (const ScaleTensor& tensor : tensors) {
    if (tensor.layer >= n_layers) {
      throw Error(
          cat(quote(tensor.name), ": there is no such layer, the model has ", n_layers),
          "the scales are those of another model, or of one that was pruned since: calibrate this "
          "one");
    }
    LayerTensors& layer = layers[tensor.layer];
    (tensor.which == 'k' ? layer.k : tensor.which == 'v' ? layer.v : layer.both) = &tensor;
  }
  if (static_cast<int64_t>(layers.size()) < n_layers) {
    throw Error(cat("has KV scales for ", count_of(layers.size(), "layer"), ", but none for ",
                    missing_layers(layers, n_layers)),
                "a runtime would use 1 there without a word: calibrate again");
  }
  std::vector<LayerScales> scales;
  for (const auto& [number, layer] : layers) scales.push_back(layer_scales(layer));
  return scales;
}

}  // namespace fp8kv
