#include "config/families/tensor_table.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "config/families/role_tensors.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr std::string_view kLayer = "{}";
constexpr std::string_view kPair = "{pair}";                   // of layers that files number as one
constexpr std::string_view kDrafterLayer = "model.midlayer.";  // the one layer, without a number
constexpr std::string_view kBlock = "{block}";  // this and the next two: see SharedBlockConfig
constexpr std::string_view kUse = "{use}";
constexpr std::string_view kWithin = "{within}";
constexpr std::string_view kExpert = "{e}";
constexpr std::string_view kHead = "{h}";
constexpr std::string_view kStream = "{s}";
constexpr std::string_view kFile = "{f}";

bool is_of_layer(const TensorRow& row) {
  return row.name.find(kLayer) != row.name.npos || row.name.find(kPair) != row.name.npos ||
         row.name.find(kBlock) != row.name.npos || row.name.starts_with(kDrafterLayer);
}

std::string with_number(const std::string& name, std::string_view place, int64_t number) {
  const size_t at = name.find(place);
  if (at == name.npos) return name;
  return cat(name.substr(0, at), number, name.substr(at + place.size()));
}

// The name of a tensor beside or in a shared block.
std::string with_block(const std::string& name, const ModelConfig& config, int64_t layer) {
  const size_t at = name.find(kWithin);
  if (at != name.npos) {
    return cat(name.substr(0, at), config.attends(layer) ? "mamba_decoder." : "",
               name.substr(at + kWithin.size()));
  }
  if (!config.attends(layer)) return name;
  return with_number(with_number(name, kBlock, config.block_layer(layer)), kUse,
                     config.block_use(layer));
}

// The name of a row's tensor. `part` is the number of the expert, the head, the stream or the file.
std::string module_name(const TensorRow& row, const ModelConfig& config, int64_t layer,
                        int64_t part = 0) {
  constexpr std::string_view kModel = "model.", kLogits = "lm_head";
  const auto number = static_cast<size_t>(&row - config.tensors.data());
  const bool other = number < config.other_names.size() && config.other_names[number];
  std::string name = with_number(std::string(other ? row.other_name : row.name), kLayer, layer);
  name = with_number(with_number(name, kPair, layer / 2), "{i}", layer % 2);
  if (config.shared_block) name = with_block(name, config, layer);
  for (const std::string_view place : {kExpert, kHead, kStream, kFile})
    name = with_number(name, place, part);
  if (name.starts_with(kModel)) return config.model_prefix + name.substr(kModel.size());
  return name == kLogits ? config.lm_head : name;
}

bool is_of_fixed(TensorRole role) {
  return role == fixed_gate || role == fixed_up || role == fixed_down;
}

bool is_of_expert(TensorRole role) {
  return role == expert_gate || role == expert_up || role == expert_down || is_of_fixed(role);
}

// The experts that have tensors of this role.
int64_t experts_with(TensorRole role, const ExpertsConfig& experts) {
  return is_of_fixed(role) ? experts.fixed : experts.count - experts.fixed;
}

// The layer with the fewest KV heads says in how many parts every layer's Q, K and V are fused.
int64_t fewest_kv_heads(const ModelConfig& config) {
  int64_t fewest = config.n_kv_heads();
  for (const LayerDescription& layer : config.layers) {
    if (layer.n_kv_heads > 0) fewest = std::min(fewest, layer.n_kv_heads);
  }
  return fewest;
}

// The number of heads that a layout alternates by; 0: it does not alternate.
int64_t groups_of(TensorLayout layout, const ModelConfig& config) {
  switch (layout) {
    case TensorLayout::by_kv_head:
      return fewest_kv_heads(config);
    case TensorLayout::by_head:
      return config.n_heads;
    case TensorLayout::by_state_head:
      return config.recurrence->k_heads;
    default:
      return 0;
  }
}

// The expert, head, stream or file that a tensor belongs to; -1: to none, or to all.
struct TensorOwner {
  int64_t expert = -1;
  int64_t head = -1;
  int64_t stream = -1;
  int64_t file = -1;
};

// Adds a row's weight and, if it has one, its bias.
void add_tensor(const TensorRow& row, const ModelConfig& config, int64_t layer,
                const TensorOwner& owner, std::vector<ModelTensor>& out) {
  const TensorRole role = row.roles.front();
  const RoleTensor first = tensor_of(role, config, layer);
  ModelTensor weight;
  const auto& [expert, head, stream, file] = owner;
  weight.name = module_name(row, config, layer, std::max({expert, head, stream, file, int64_t{0}}));
  weight.expert = expert;
  weight.head = head;
  weight.file = file;
  weight.stream = stream;
  weight.layout = row.layout;
  weight.own_blocks = row.own_blocks;
  weight.groups = groups_of(row.layout, config);
  const bool two = row.form == VectorForm::first_of_two;
  const bool of_k_dim = row.form == VectorForm::of_k_dim;
  const bool is_row = two || row.form == VectorForm::one_row;
  int64_t rows = 0;
  for (const TensorRole each : row.roles) {
    const RoleTensor of_role = tensor_of(each, config, layer);
    FP8KV_ASSERT(of_role.exists && of_role.has_bias == first.has_bias);
    FP8KV_ASSERT(of_role.shape.rank() == first.shape.rank());
    const int64_t more = is_row || of_role.shape.rank() == 0 ? 1 : of_role.shape[0];
    weight.parts.push_back({each, rows, more});
    rows += more;
  }
  const bool turned = is_turned(row.layout);
  weight.shape = is_row                          ? Shape{two ? 2 * rows : rows, first.shape[0]}
                 : row.form == VectorForm::inner ? Shape{1, 1, rows, 1}
                 : of_k_dim                      ? Shape{std::max(rows, config.recurrence->k_dim)}
                 : first.shape.rank() == 0       ? Shape{}
                 : first.shape.rank() == 1       ? Shape{rows}
                 : first.shape.rank() == 3       ? Shape{rows, first.shape[1], first.shape[2]}
                 : turned                        ? Shape{first.shape[1], rows}
                                                 : Shape{rows, first.shape[1]};
  const bool of_all = is_of_expert(role) && expert < 0;
  const int64_t of_role = of_all ? experts_with(role, *config.experts) : 0;
  if (of_all) weight.shape = {of_role, weight.shape[0], weight.shape[1]};
  if (head >= 0) weight.shape = {first.shape[1]};
  const bool bare = role == choice_bias || row.bare;
  std::optional<ModelTensor> bias;
  if (first.has_bias) {
    bias = weight;
    bias->name += bare ? "_bias" : ".bias";
    bias->shape = of_all ? Shape{of_role, rows} : Shape{rows};
    bias->is_bias = true;
  }
  if (!bare) weight.name += ".weight";
  out.push_back(std::move(weight));
  if (bias) out.push_back(std::move(*bias));
}

// Adds a row's tensors: one for each expert, head, stream or file if the row's name says so.
void add_tensors(const TensorRow& row, const ModelConfig& config, int64_t layer,
                 std::vector<ModelTensor>& out) {
  const RoleTensor tensor = tensor_of(row.roles.front(), config, layer);
  if (!tensor.exists) return;
  // Adds one for each owner of a kind, if the name has its place.
  const auto add_each = [&](std::string_view place, int64_t count, int64_t TensorOwner::*kind) {
    if (row.name.find(place) == row.name.npos) return false;
    for (int64_t number = 0; number < count; ++number) {
      TensorOwner owner;
      owner.*kind = number;
      add_tensor(row, config, layer, owner, out);
    }
    return true;
  };
  const int64_t heads = tensor.shape.rank() > 0 ? tensor.shape[0] : 0;
  const int64_t experts = config.experts ? experts_with(row.roles.front(), *config.experts) : 0;
  if (add_each(kHead, heads, &TensorOwner::head) ||
      add_each(kStream, config.streams ? config.streams->count - 1 : 0, &TensorOwner::stream) ||
      add_each(kFile, config.ngrams ? config.ngrams->files : 0, &TensorOwner::file) ||
      add_each(kExpert, experts, &TensorOwner::expert)) {
    return;
  }
  add_tensor(row, config, layer, {}, out);
}

}  // namespace

bool is_turned(TensorLayout layout) {
  return layout == TensorLayout::transposed || layout == TensorLayout::columns_in_turn;
}

bool is_of_all_experts(const ModelTensor& tensor) {
  return tensor.expert < 0 && is_of_expert(tensor.parts.front().role);
}

std::vector<ModelTensor> layer_tensors(const ModelConfig& config, int64_t layer) {
  std::vector<ModelTensor> tensors;
  for (const TensorRow& row : config.tensors) {
    if (is_of_layer(row)) add_tensors(row, config, layer, tensors);
  }
  return tensors;
}

std::vector<ModelTensor> outer_tensors(const ModelConfig& config) {
  std::vector<ModelTensor> tensors;
  for (const TensorRow& row : config.tensors) {
    if (!is_of_layer(row)) add_tensors(row, config, 0, tensors);
  }
  return tensors;
}

ModelTensor as_decoded(const ModelTensor& tensor) {
  ModelTensor decoded = tensor;
  if (tensor.groups > 0) return decoded;
  decoded.layout = TensorLayout::rows;
  if (!is_turned(tensor.layout)) return decoded;
  const Shape& shape = tensor.shape;
  decoded.shape =
      shape.rank() == 3 ? Shape{shape[0], shape[2], shape[1]} : Shape{shape[1], shape[0]};
  return decoded;
}

std::string weight_name(const ModelConfig& config, TensorRole role, int64_t layer) {
  const auto row =
      std::find_if(config.tensors.begin(), config.tensors.end(), [&](const TensorRow& each) {
        return std::find(each.roles.begin(), each.roles.end(), role) != each.roles.end();
      });
  FP8KV_ASSERT(row != config.tensors.end());
  return module_name(*row, config, layer) + ".weight";
}

std::vector<std::string> linear_modules(const ModelConfig& config) {
  std::vector<std::string> modules;
  const auto add = [&](const std::vector<ModelTensor>& tensors) {
    constexpr std::string_view kWeight = ".weight";
    for (const ModelTensor& tensor : tensors) {
      const TensorRole role = tensor.parts.front().role;
      const bool table = role == embedding || role == positions || role == layer_embedding ||
                         role == q_norm || role == k_norm || role == conv_q || role == conv_v ||
                         role == ngram_table || role == ngram_conv || role == k_conv ||
                         role == v_conv || role == attn_conv || role == ffn_conv ||
                         role == distance_bank || role == pool_bias || role == index_bias;
      if (tensor.shape.rank() < 2 || table) continue;
      const size_t after = tensor.name.ends_with(kWeight) ? kWeight.size() : 0;
      modules.push_back(tensor.name.substr(0, tensor.name.size() - after));
    }
  };
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) add(layer_tensors(config, layer));
  add(outer_tensors(config));
  return modules;
}

}  // namespace fp8kv
