#include "checkpoint/model/stored_names.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "checkpoint/model_weights.h"
#include "config/architectures.h"
#include "config/families/tensor_table.h"

namespace fp8kv {
namespace {

// Sets the prefixes of the language model's tensors. They differ in larger models, and between the
// versions that wrote them.
void find_text_model(const Checkpoint& checkpoint, ModelConfig& config) {
  struct Place {
    const char* model_prefix;
    const char* lm_head;
  };
  constexpr Place kPlaces[] = {
      {"language_model.model.", "language_model.lm_head"},
      {"language_model.backbone.", "language_model.lm_head"},
      {"model.language_model.", "lm_head"},
      {"model.llm.", "model.llm.unembed"},  // Inkling
      {"model.text_model.", "lm_head"},
      {"thinker.model.", "thinker.lm_head"},  // Qwen's Omni
      {"backbone.", "lm_head"},
      {"", "lm_head"},  // GPT-2's first files, and DeepSeek V4's
  };
  const bool own_head = config.lm_head != "lm_head";  // under the same name with any prefix
  if (has_weight(checkpoint, q_name(config))) return;
  ModelConfig placed = config;
  for (const auto& tensors : {config.tensors, other_tensors(config.tensors)}) {
    placed.tensors = tensors;
    for (const Place& place : kPlaces) {
      if (tensors.empty()) continue;
      placed.model_prefix = place.model_prefix;
      if (!own_head) placed.lm_head = place.lm_head;
      if (!has_weight(checkpoint, q_name(placed))) continue;
      config = placed;
      return;
    }
  }
}

// Whether the checkpoint stores experts in the way of the config's table.
bool has_experts(const Checkpoint& checkpoint, const ModelConfig& config, int64_t layer) {
  const ModelWeights weights(checkpoint, config.dtype);
  for (const ModelTensor& tensor : layer_tensors(config, layer)) {
    const bool is_down = tensor.parts.front().role == TensorRole::expert_down && !tensor.is_bias;
    if (is_down) return weights.find(tensor).has_value();
  }
  return false;
}

// Whether the checkpoint has the matrices of experts in the shapes of the config's table.
bool has_expert_shapes(const Checkpoint& checkpoint, const ModelConfig& config, int64_t layer) {
  for (const ModelTensor& tensor : layer_tensors(config, layer)) {
    const TensorRole role = tensor.parts.front().role;
    if (role != TensorRole::expert_gate && role != TensorRole::expert_down) continue;
    const TensorEntry* entry = checkpoint.find(tensor.name);
    if (entry == nullptr || entry->shape != tensor.shape) return false;
  }
  return true;
}

// Picks the table of tensors that fits how the files store experts: in one tensor or apart, and if
// in one, each as it is or transposed. Like in transformers, shapes that fit both are as they are.
void find_experts(const Checkpoint& checkpoint, ModelConfig& config) {
  const std::span<const TensorRow> other_rows = other_tensors(config.tensors);
  if (other_rows.empty() || !config.experts) return;
  int64_t layer = 0;
  while (config.layer(layer).feed_forward != FeedForward::experts) ++layer;
  ModelConfig other = config;
  other.tensors = turned_tensors(config.tensors);
  if (!other.tensors.empty() && !has_expert_shapes(checkpoint, config, layer) &&
      has_expert_shapes(checkpoint, other, layer)) {
    config.tensors = other.tensors;
    return;
  }
  other.tensors = other_rows;
  if (has_experts(checkpoint, config, layer) || !has_experts(checkpoint, other, layer)) return;
  config.tensors = other_rows;
}

// Whether the files have the tensors of row `number` under the row's other name alone. The first
// layer with such a tensor decides.
bool has_other_name(const Checkpoint& checkpoint, const ModelConfig& config, size_t number) {
  ModelConfig other = config;
  other.other_names.assign(config.tensors.size(), false);
  other.other_names[number] = true;
  const auto in = [&](const std::vector<ModelTensor>& usual,
                      const std::vector<ModelTensor>& named) -> std::optional<bool> {
    for (size_t i = 0; i < usual.size(); ++i) {
      if (usual[i].name == named[i].name) continue;
      return !has_weight(checkpoint, usual[i].name) && has_weight(checkpoint, named[i].name);
    }
    return std::nullopt;
  };
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
    if (const auto found = in(layer_tensors(config, layer), layer_tensors(other, layer))) {
      return *found;
    }
  }
  return in(outer_tensors(config), outer_tensors(other)).value_or(false);
}

// Picks the names that files of some versions have instead of the usual ones.
void find_names(const Checkpoint& checkpoint, ModelConfig& config) {
  std::vector<bool> names(config.tensors.size(), false);
  for (size_t i = 0; i < names.size(); ++i) {
    if (config.tensors[i].other_name.empty()) continue;
    names[i] = has_other_name(checkpoint, config, i);
  }
  if (std::find(names.begin(), names.end(), true) != names.end()) {
    config.other_names = std::move(names);
  }
}

// Clears the choice bias where it may be absent and no layer of the files has it.
void find_choice_bias(const Checkpoint& checkpoint, ModelConfig& config) {
  const auto may_lack = [](const TensorRow& row) { return row.optional; };
  if (!config.experts || !config.experts->choice_bias ||
      std::none_of(config.tensors.begin(), config.tensors.end(), may_lack)) {
    return;
  }
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
    for (const ModelTensor& tensor : layer_tensors(config, layer)) {
      const bool is_bias = tensor.parts.front().role == TensorRole::choice_bias;
      if (is_bias && checkpoint.find(tensor.name)) return;
    }
  }
  config.experts->choice_bias = false;
}

}  // namespace

std::string q_name(const ModelConfig& config) {
  int64_t layer = 0;
  while (config.layer(layer).n_kv_heads == 0) ++layer;
  return weight_name(config, TensorRole::q, layer);
}

bool has_weight(const Checkpoint& checkpoint, const std::string& name) {
  constexpr std::string_view kEnd = ".weight";
  const std::string module = name.substr(0, name.size() - kEnd.size());
  return checkpoint.find(name) || checkpoint.find(module + ".weight_packed") ||
         checkpoint.find(module + ".qweight");
}

void find_stored_names(const Checkpoint& checkpoint, ModelConfig& config) {
  find_text_model(checkpoint, config);
  find_experts(checkpoint, config);
  find_names(checkpoint, config);
  find_choice_bias(checkpoint, config);
}

}  // namespace fp8kv
