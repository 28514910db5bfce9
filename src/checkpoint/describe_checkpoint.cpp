#include "checkpoint/describe_checkpoint.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "checkpoint/layer_name.h"
#include "config/describe/describe_model.h"
#include "config/values/config_values.h"
#include "config/values/language_config.h"

namespace fp8kv {
namespace {

// If the tensor is a K projection of the language model: its layer and its number of rows. nullopt
// for any other tensor, and for weights packed into integers, whose shapes differ.
std::optional<std::pair<int64_t, int64_t>> k_projection(const TensorEntry& entry) {
  const auto parts = split_layer_name(entry.name);
  if (!parts || in_attention(parts->rest) != "k_proj.weight") return std::nullopt;
  // A vision tower has layers of its own.
  const bool of_text = parts->prefix == "model." || parts->prefix == "backbone." ||
                       parts->prefix == "model.text_model." ||
                       parts->prefix.find("language_model") != parts->prefix.npos;
  if (!of_text) return std::nullopt;
  const bool plain = is_compute_dtype(entry.dtype) || fp8_format(entry.dtype);
  if (!plain || entry.shape.rank() != 2) return std::nullopt;
  return std::pair(parts->layer, entry.shape[0]);
}

// The number of layers behind the last that draft tokens, outside of the model itself: GLM 4.5 has
// one.
int64_t drafting_layers(const Json& config) {
  const auto count = language_config(config).find("num_nextn_predict_layers");
  return count && count->is_number() ? in_range(*count, 0, kMostLayers) : 0;
}

}  // namespace

ModelDescription describe_model(const Checkpoint& checkpoint) {
  ModelDescription out = describe_model(checkpoint.config());
  const int64_t n_drafting = drafting_layers(checkpoint.config());
  for (const auto& [name, location] : checkpoint.tensors()) {
    const auto stored = k_projection(location.entry);
    if (!stored) continue;
    if (stored->first >= out.n_layers() + n_drafting) {
      make_unclear(out,
                   Error(cat(quote(name), ": is of layer ", stored->first,
                             ", but config.json makes it ", count_of(out.layers.size(), "layer")),
                         "config.json and the weights are not of the same model"));
      break;
    }
    if (stored->first >= out.n_layers() || !out.writes_cache(stored->first)) continue;
    const LayerDescription& layer = out.layer(stored->first);
    if (stored->second == layer.n_kv_heads * layer.k_head_dim) continue;
    make_unclear(
        out, Error(cat(quote(name), ": has ", stored->second, " rows, but config.json makes it ",
                       layer.n_kv_heads, " KV heads of ", layer.k_head_dim),
                   "layers of different shapes, in a form that is not known here"));
    break;
  }
  return out;
}

}  // namespace fp8kv
