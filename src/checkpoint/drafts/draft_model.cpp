#include "checkpoint/drafts/draft_model.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/drafts/stored_tensor.h"
#include "checkpoint/model_weights.h"
#include "core/model/tensor_roles.h"

namespace fp8kv {
namespace {

// The number of the last layer with full attention and its own cache; -1 if there is none.
int64_t last_full_layer(const ModelConfig& config) {
  int64_t index = config.n_layers() - 1;
  while (index >= 0 &&
         (config.layer(index).mixing != Mixing::full || !config.writes_cache(index))) {
    --index;
  }
  return index;
}

template <typename Value>
void put_at(std::vector<Value>& values, int64_t from, int64_t to) {
  if (values.empty()) return;
  const Value value = values[static_cast<size_t>(from)];
  values.resize(static_cast<size_t>(to) + 1, value);
  values[static_cast<size_t>(to)] = value;
}

ModelConfig config_of(const ModelConfig& model, const DraftLayer& layer, int64_t like) {
  constexpr std::string_view kLayers = "layers.";
  ModelConfig config = model;
  put_at(config.layers, like, layer.number);
  put_at(config.layer_ropes, like, layer.number);
  put_at(config.hidden_dims, like, layer.number);
  put_at(config.gate_cuts, like, layer.number);
  put_at(config.swiglus, like, layer.number);
  const std::string number = cat(layer.number);
  const std::string_view name = layer.name;
  const std::string_view stack = name.substr(0, name.size() - number.size());
  FP8KV_ASSERT(stack.ends_with(kLayers));
  config.model_prefix = stack.substr(0, stack.size() - kLayers.size());
  // A separate stack has no layers but the draft layers.
  if (!layer.kind->layers.empty()) {
    const auto end = static_cast<size_t>(layer.number) + 1;
    config.layers.resize(end);
    config.layer_ropes.resize(end);
    if (!config.hidden_dims.empty()) config.hidden_dims.resize(end);
    if (!config.gate_cuts.empty()) config.gate_cuts.resize(end);
    if (!config.swiglus.empty()) config.swiglus.resize(end);
  }
  config.layers[static_cast<size_t>(layer.number)].cache_of = layer.number;
  return config;
}

// Whether the tensor is used before attention: for K or V of the layer, or for Q.
bool is_before_attention(const ModelTensor& tensor) {
  const RolePart part = role_row(tensor.parts.front().role).part;
  return part == RolePart::embedding || part == RolePart::cached;
}

ModelTensor tensor_named(const std::string& name, const Shape& shape, TensorRole role) {
  ModelTensor tensor;
  tensor.name = name + ".weight";
  tensor.shape = shape;
  tensor.parts = {{role, 0, shape[0]}};
  return tensor;
}

bool is_plain(const ModelConfig& config) {
  return config.stream_dim() == config.dim && config.embed_dim == 0 &&
         config.layer_input_dim == 0 && config.position_rows == 0 && config.laurel_rank == 0 &&
         config.block.norm == NormKind::rms && config.block.norm_place == NormPlace::before;
}

}  // namespace

DraftModel read_draft_model(const Checkpoint& checkpoint, const ModelConfig& config,
                            const DraftLayer& layer) {
  const auto& computed = layer.kind->computed;
  const bool known =
      std::find(computed.begin(), computed.end(), config.architecture) != computed.end();
  const int64_t like = last_full_layer(config);
  if (!known || like < 0 || !is_plain(config)) {
    throw Error(cat("draft layers of the kind ", quote(layer.kind->name), " in ",
                    config.architecture, " are not computed here"),
                kDraftNotMeasured);
  }
  DraftModel draft{layer, config_of(config, layer, like), layer.number, {}, {}, {}};
  const ModelWeights weights(checkpoint, config.dtype);
  const DraftEntry& entry = layer.kind->entry;
  const auto name = [&](std::string_view part) { return entry_name(layer, part); };
  const Shape row{config.dim};
  draft.embedding_norm = tensor_named(name(entry.embedding_norm), row, TensorRole::attn_norm);
  draft.hidden_norm = tensor_named(name(entry.hidden_norm), row, TensorRole::attn_norm);
  draft.product =
      tensor_named(name(entry.product), Shape{config.dim, 2 * config.dim}, TensorRole::o);
  for (const ModelTensor& tensor : layer_tensors(draft.config, draft.index)) {
    if (is_before_attention(tensor)) check_stored(weights, tensor);
  }
  for (const ModelTensor* tensor : {&draft.embedding_norm, &draft.hidden_norm, &draft.product}) {
    check_stored(weights, *tensor);
  }
  return draft;
}

DraftModels read_draft_models(const Checkpoint& checkpoint, const ModelConfig& config) {
  DraftModels found;
  for (const DraftLayer& layer : find_draft_layers(checkpoint.tensors(), checkpoint.config())) {
    const std::string where = cat("draft layer ", layer.name, ": ");
    if (!found.measured.empty()) {
      found.left_out.push_back(where + "only the first draft layer is computed here");
      continue;
    }
    try {
      found.measured.push_back(read_draft_model(checkpoint, config, layer));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
      found.left_out.push_back(where + error.what());
    }
  }
  return found;
}

}  // namespace fp8kv
