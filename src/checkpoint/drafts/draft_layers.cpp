#include "checkpoint/drafts/draft_layers.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/error.h"
#include "checkpoint/layer_name.h"
#include "config/describe/describe_model.h"

namespace fp8kv {
namespace {

// `rest` is a name below the layer, such as "self_attn.k_proj.weight". Quantised weights count too.
bool is_k_projection(std::string_view rest) {
  constexpr std::string_view kProjections[] = {"k_proj.weight", "k_proj.qweight", "qkv_proj.weight",
                                               "kv_a_proj_with_mqa.weight", "wk_dv.weight"};
  constexpr std::string_view kBlock = "transformer_block.";  // Inkling
  if (rest.starts_with(kBlock)) rest.remove_prefix(kBlock.size());
  const auto name = in_attention(rest);
  return name && std::any_of(std::begin(kProjections), std::end(kProjections),
                             [&](std::string_view k) { return name->starts_with(k); });
}

// The layer "mtp.layers.0" of a tensor such as "mtp.layers.0.self_attn.k_proj.weight". nullopt
// unless the tensor is a K projection in a layer of this kind.
std::optional<DraftLayer> layer_of(std::string_view tensor, const DraftKind& kind, int64_t n_layers,
                                   int64_t count) {
  if (kind.layers.empty()) {
    const auto parts = split_layer_name(tensor);
    const bool behind = parts && parts->layer >= n_layers && parts->layer < n_layers + count;
    if (!behind || !is_k_projection(parts->rest)) return std::nullopt;
    return DraftLayer{cat(parts->prefix, parts->layers, parts->layer), &kind, parts->layer};
  }
  if (!tensor.starts_with(kind.layers)) return std::nullopt;
  const std::string_view rest = tensor.substr(kind.layers.size());
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const auto digits = static_cast<size_t>(stop - rest.data());
  const bool plain = error == std::errc() && number >= 0 && cat(number).size() == digits;
  if (!plain || digits == rest.size() || rest[digits] != '.') return std::nullopt;
  if (!is_k_projection(rest.substr(digits + 1))) return std::nullopt;
  return DraftLayer{cat(kind.layers, number), &kind, number};
}

// Some kinds name their layers alike. The product in front of the layer tells them apart.
bool has_product(const TensorMap& tensors, const DraftLayer& layer) {
  const std::string product = entry_name(layer, layer.kind->entry.product);
  const auto found = tensors.lower_bound(product + ".");
  return found != tensors.end() && found->first.starts_with(product + ".");
}

}  // namespace

std::string entry_name(const DraftLayer& layer, std::string_view name) {
  constexpr std::string_view kLayer = "{}";
  return name.starts_with(kLayer) ? cat(layer.name, name.substr(kLayer.size())) : std::string(name);
}

std::vector<DraftLayer> find_draft_layers(const TensorMap& tensors, const Json& config) {
  std::vector<DraftLayer> found;
  for (const DraftKind& kind : draft_kinds()) {
    // Layers behind the last have names like the model's own layers.
    const int64_t count = kind.layers.empty() ? draft_count(kind, config) : 0;
    if (kind.layers.empty() && count == 0) continue;
    const int64_t n_layers = kind.layers.empty() ? describe_model(config).n_layers() : 0;
    std::map<int64_t, DraftLayer> of_kind;
    // Names are sorted, so the names with one prefix stand together.
    for (auto at = tensors.lower_bound(std::string(kind.layers));
         at != tensors.end() && at->first.starts_with(kind.layers); ++at) {
      const auto layer = layer_of(at->first, kind, n_layers, count);
      if (layer && has_product(tensors, *layer)) of_kind.emplace(layer->number, *layer);
    }
    for (const auto& [number, layer] : of_kind) {
      const bool known = std::any_of(found.begin(), found.end(),
                                     [&](const auto& each) { return each.name == layer.name; });
      if (!known) found.push_back(layer);
    }
  }
  return found;
}

std::string_view rest_in(const DraftLayer& layer, std::string_view tensor) {
  const bool within = tensor.size() > layer.name.size() && tensor.starts_with(layer.name) &&
                      tensor[layer.name.size()] == '.';
  return within ? tensor.substr(layer.name.size() + 1) : std::string_view();
}

size_t draft_of(const std::vector<DraftLayer>& layers, std::string_view tensor) {
  const auto found = std::find_if(layers.begin(), layers.end(), [&](const DraftLayer& layer) {
    return !rest_in(layer, tensor).empty();
  });
  return static_cast<size_t>(found - layers.begin());
}

std::string draft_list(const std::vector<DraftLayer>& layers) {
  std::vector<std::string> names;
  for (const DraftLayer& layer : layers) names.push_back(layer.name);
  return cat(count_of(layers.size(), "draft layer"), " (", join(names), ")");
}

}  // namespace fp8kv
