#include "config/tensor_table.h"

#include <algorithm>

#include "base/error.h"

namespace fp8kv {
namespace {

using enum TensorRole;

const TensorRow kLlamaTensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.q_norm", {q_norm}},
    {"model.layers.{}.self_attn.k_norm", {k_norm}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.gate_proj", {gate}},
    {"model.layers.{}.mlp.up_proj", {up}},
    {"model.layers.{}.mlp.down_proj", {down}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

// OLMo 2 has no norms before its blocks.
const TensorRow kOlmo2Tensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.q_norm", {q_norm}},
    {"model.layers.{}.self_attn.k_norm", {k_norm}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {attn_post_norm}},
    {"model.layers.{}.mlp.gate_proj", {gate}},
    {"model.layers.{}.mlp.up_proj", {up}},
    {"model.layers.{}.mlp.down_proj", {down}},
    {"model.layers.{}.post_feedforward_layernorm", {ffn_post_norm}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

constexpr std::string_view kLayer = "{}";

bool is_of_layer(const TensorRow& row) {
  return row.name.find(kLayer) != row.name.npos;
}

std::string module_name(const TensorRow& row, int64_t layer) {
  const size_t at = row.name.find(kLayer);
  if (at == row.name.npos) return std::string(row.name);
  return cat(row.name.substr(0, at), layer, row.name.substr(at + kLayer.size()));
}

// What a role's tensor is by itself.
struct RoleTensor {
  Shape shape;
  bool exists = true;
  bool has_bias = false;
};

RoleTensor tensor_of(TensorRole role, const ModelConfig& config) {
  const BlockConfig& block = config.block;
  const bool normed_before = norms_input(block.norm_place);
  const int64_t q_dim = config.n_heads * config.head_dim();
  const int64_t kv_dim = config.n_kv_heads() * config.head_dim();
  switch (role) {
    case embedding:
      return {{config.vocab_size, config.dim}};
    case lm_head:
      return {{config.vocab_size, config.dim}, true, block.head_bias};
    case attn_norm:
      return {{config.dim}, normed_before, block.norm_bias};
    case ffn_norm:
      return {{config.dim}, normed_before && !block.shared_norm, block.norm_bias};
    case attn_post_norm:
    case ffn_post_norm:
      return {{config.dim}, block.norm_place != NormPlace::before, block.norm_bias};
    case norm:
      return {{config.dim}, block.norm_place != NormPlace::after_add, block.norm_bias};
    case q:
      return {{q_dim, config.dim}, true, config.qkv_bias};
    case k:
    case v:
      return {{kv_dim, config.dim}, true, config.qkv_bias};
    case q_norm:
      return {{block.qk_norm == QkNorm::whole ? q_dim : config.head_dim()},
              block.qk_norm != QkNorm::none};
    case k_norm:
      return {{block.qk_norm == QkNorm::whole ? kv_dim : config.head_dim()},
              block.qk_norm != QkNorm::none};
    case o:
      return {{config.dim, q_dim}, true, config.o_bias};
    case gate:
      return {{config.hidden_dim, config.dim}, block.gated, config.mlp_bias};
    case up:
      return {{config.hidden_dim, config.dim}, true, config.mlp_bias};
    case down:
      return {{config.dim, config.hidden_dim}, true, config.mlp_bias};
  }
  assertion_failed("a TensorRole", __FILE__, __LINE__);
}

// A row's weight, and its bias where it has one; nothing where the model has no such tensor.
void add_tensors(const TensorRow& row, const ModelConfig& config, int64_t layer,
                 std::vector<ModelTensor>& out) {
  const RoleTensor first = tensor_of(row.roles.front(), config);
  if (!first.exists) return;
  ModelTensor weight{module_name(row, layer), first.shape, false, {}};
  int64_t rows = 0;
  for (const TensorRole role : row.roles) {
    const RoleTensor of_role = tensor_of(role, config);
    FP8KV_ASSERT(of_role.exists && of_role.has_bias == first.has_bias);
    FP8KV_ASSERT(of_role.shape.rank() == first.shape.rank());
    weight.parts.push_back({role, rows, of_role.shape[0]});
    rows += of_role.shape[0];
  }
  weight.shape = first.shape.rank() == 1 ? Shape{rows} : Shape{rows, first.shape[1]};
  if (first.has_bias) {
    ModelTensor bias{weight.name + ".bias", {rows}, true, weight.parts};
    weight.name += ".weight";
    out.push_back(std::move(weight));
    out.push_back(std::move(bias));
  } else {
    weight.name += ".weight";
    out.push_back(std::move(weight));
  }
}

}  // namespace

std::span<const TensorRow> llama_tensors() {
  return kLlamaTensors;
}

std::span<const TensorRow> olmo2_tensors() {
  return kOlmo2Tensors;
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

std::string weight_name(const ModelConfig& config, TensorRole role, int64_t layer) {
  const auto row =
      std::find_if(config.tensors.begin(), config.tensors.end(), [&](const TensorRow& each) {
        return std::find(each.roles.begin(), each.roles.end(), role) != each.roles.end();
      });
  FP8KV_ASSERT(row != config.tensors.end());
  return module_name(*row, layer) + ".weight";
}

std::vector<std::string> linear_modules(const ModelConfig& config) {
  std::vector<std::string> modules;
  const auto add = [&](const std::vector<ModelTensor>& tensors) {
    constexpr std::string_view kWeight = ".weight";
    for (const ModelTensor& tensor : tensors) {
      if (tensor.shape.rank() < 2 || tensor.parts.front().role == embedding) continue;
      modules.push_back(tensor.name.substr(0, tensor.name.size() - kWeight.size()));
    }
  };
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) add(layer_tensors(config, layer));
  add(outer_tensors(config));
  return modules;
}

}  // namespace fp8kv
