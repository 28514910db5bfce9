#include "config/families/tensor_table.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "config/families/part_tensors.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr std::string_view kLayer = "{}";
constexpr std::string_view kDrafterLayer = "model.midlayer.";  // the one layer, without a number
constexpr std::string_view kExpert = "{e}";
constexpr std::string_view kHead = "{h}";
constexpr std::string_view kStream = "{s}";
constexpr std::string_view kFile = "{f}";

bool is_of_layer(const TensorRow& row) {
  return row.name.find(kLayer) != row.name.npos || row.name.starts_with(kDrafterLayer);
}

std::string with_number(const std::string& name, std::string_view place, int64_t number) {
  const size_t at = name.find(place);
  if (at == name.npos) return name;
  return cat(name.substr(0, at), number, name.substr(at + place.size()));
}

// The name of a row's tensor. `part` is the number of the expert, the head, the stream or the file.
std::string module_name(const TensorRow& row, const ModelConfig& config, int64_t layer,
                        int64_t part = 0) {
  constexpr std::string_view kModel = "model.", kLogits = "lm_head";
  const auto number = static_cast<size_t>(&row - config.tensors.data());
  const bool other = number < config.other_names.size() && config.other_names[number];
  std::string name = with_number(std::string(other ? row.other_name : row.name), kLayer, layer);
  for (const std::string_view place : {kExpert, kHead, kStream, kFile})
    name = with_number(name, place, part);
  if (name.starts_with(kModel)) return config.model_prefix + name.substr(kModel.size());
  return name == kLogits ? config.lm_head : name;
}

bool is_of_expert(TensorRole role) {
  return role == expert_gate || role == expert_up || role == expert_down;
}

bool is_of_state(TensorRole role) {
  return role >= state_q && role <= state_out;
}

bool is_of_hyper(TensorRole role) {
  return (role >= hyper_attn && role <= hyper_attn_up) ||
         (role >= hyper_ffn && role <= hyper_ffn_up) ||
         (role >= hyper_head && role <= hyper_head_up);
}

bool is_of_ngrams(TensorRole role) {
  return role >= ngram_table && role <= ngram_conv;
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

// Whether files have the gate of attention in the tensor of Q, with its bias: Qwen3-Next.
bool has_gate_in_q(const ModelConfig& config) {
  return std::any_of(config.tensors.begin(), config.tensors.end(), [](const TensorRow& row) {
    return row.roles.front() == q && row.roles.back() == attn_gate;
  });
}

bool has_head_norms(const BlockConfig& block) {
  return block.qk_norm != QkNorm::none && !is_plain(block.qk_norm);
}

// The shape of the norm weights of Q or K.
Shape head_norm_shape(const ModelConfig& config, int64_t n_heads, int64_t head_dim) {
  switch (config.block.qk_norm) {
    case QkNorm::whole:
      return {n_heads * head_dim};
    case QkNorm::own_heads:
      return {n_heads, head_dim};
    default:
      return {head_dim};
  }
}

// The tensor of a role. `layer` matters only if the role belongs to a layer.
RoleTensor tensor_of(TensorRole role, const ModelConfig& config, int64_t layer) {
  const BlockConfig& block = config.block;
  const LayerDescription& of_layer = config.layer(layer);
  const bool has_experts = config.has_experts(layer), has_dense = config.has_dense(layer);
  const bool feeds_forward = of_layer.feed_forward != FeedForward::none;
  const bool has_kv = config.writes_cache(layer);
  const bool has_state = config.keeps_state(layer);
  const bool mixes = of_layer.mixing != Mixing::none;
  const bool attends = config.attends(layer);
  const NormPlace norm_place = config.norm_place(layer);
  const NormPlace ffn_norm_place = config.ffn_norm_place(layer);
  const bool normed_before = norms_input(norm_place) && !config.bare_norms;
  const int64_t heads = config.n_heads_of(layer), kv_heads = of_layer.n_kv_heads;
  const int64_t attended_dim = heads * of_layer.v_head_dim;
  const bool other_size = config.embed_dim > 0;
  const bool has_inputs = config.layer_input_dim > 0;
  const int64_t hidden_dim = config.hidden_dim_of(layer);
  const int64_t embed_dim = other_size       ? config.embed_dim
                            : config.drafter ? config.drafter->dim
                                             : config.dim;
  switch (role) {
    case embedding:
      return {{config.vocab_size, embed_dim}};
    case hidden_product:
    case hidden_norm:
    case token_norm:
      return tensor_of_drafter(role, config);
    case embed_up:
      return {{config.dim, embed_dim}, other_size};
    case positions:
      return {{config.position_rows, config.dim}, config.position_rows > 0};
    case embed_norm:
      return {{config.dim},
              config.embed_norm && !config.bare_norms && !config.bare_embed_norm,
              block.norm_bias};
    case layer_embedding:
      return {{config.layer_vocab_size, config.n_layers() * config.layer_input_dim}, has_inputs};
    case layer_projection:
      return {{config.n_layers() * config.layer_input_dim, config.dim}, has_inputs};
    case layer_projection_norm:
      return {{config.layer_input_dim}, has_inputs};
    case stream_in:
    case stream_norm:
    case stream_router:
    case stream_predict:
    case stream_correct:
    case stream_scale:
    case stream_out:
      return tensor_of_streams(role, config);
    case laurel_down:
      return {{config.laurel_rank, config.dim}, config.laurel_rank > 0};
    case laurel_up:
      return {{config.dim, config.laurel_rank}, config.laurel_rank > 0};
    case laurel_norm:
      return {{config.dim}, config.laurel_rank > 0};
    case input_gate:
      return {{config.layer_input_dim, config.dim}, has_inputs};
    case input_out:
      return {{config.dim, config.layer_input_dim}, has_inputs};
    case input_post_norm:
      return {{config.dim}, has_inputs};
    case layer_scale:
      return {{1}, block.layer_scale};
    case head_down:
      return {{embed_dim, config.dim}, other_size};
    case lm_head:
      return {{config.vocab_size, embed_dim}, true, block.head_bias};
    case attn_norm:
      return {{config.dim}, mixes && normed_before, block.norm_bias};
    case ffn_norm:
      return {{config.dim}, feeds_forward && normed_before && !block.shared_norm, block.norm_bias};
    case attn_post_norm:
      return {{config.dim}, mixes && norms_behind(norm_place), block.norm_bias};
    case ffn_post_norm:
      return {{config.dim}, feeds_forward && norms_behind(ffn_norm_place), block.norm_bias};
    case norm:
      return {{config.dim}, norms_end(block.norm_place) && !config.bare_norms, block.norm_bias};
    case q_down:
    case q_down_norm:
    case TensorRole::latent:
    case k_rope:
    case latent_norm:
    case k_up:
    case v_up:
      return tensor_of_latent(role, config, attends);
    case q:
      if (config.latent) return tensor_of_latent(role, config, attends);
      return {{heads * of_layer.k_head_dim, config.dim}, attends, config.qkv_bias};
    case attn_gate:
      return {{is_of_heads(block.attention_gate) ? heads
               : config.latent                   ? heads * config.latent->v_dim
                                                 : attended_dim,
               config.dim},
              attends && block.attention_gate != AttentionGate::none,
              config.qkv_bias && has_gate_in_q(config)};
    case k:
      return {
          {kv_heads * of_layer.k_head_dim, config.dim}, has_kv && !config.latent, config.qkv_bias};
    case v:
      return {{kv_heads * of_layer.v_head_dim, config.dim},
              has_kv && !config.latent && !of_layer.v_is_k,
              config.qkv_bias};
    case q_norm:
      return {head_norm_shape(config, heads, of_layer.k_head_dim), attends && has_head_norms(block),
              block.qk_norm_bias};
    case k_norm:
      return {head_norm_shape(config, kv_heads, of_layer.k_head_dim),
              has_kv && has_head_norms(block), block.qk_norm_bias};
    case sinks:
      return {{heads}, config.has_sinks(layer)};
    case index_q:
    case index_k:
    case index_q_norm:
    case index_norm:
    case index_weights:
      return tensor_of_indexer(role, config, of_layer.index_bytes > 0);
    case o:
      if (config.latent) return tensor_of_latent(role, config, attends);
      return {{config.dim, attended_dim}, attends, config.o_bias};
    case gate:
      return {{hidden_dim, config.dim}, block.gated && has_dense, config.mlp_bias};
    case up:
      return {{hidden_dim, config.dim}, has_dense, config.mlp_bias};
    case xielu_positive:
    case xielu_negative:
      return {{1}, block.xielu && has_dense};
    case xielu_beta:
    case xielu_eps:
      return {{}, block.xielu && has_dense};
    case down:
      return {{config.dim, hidden_dim}, has_dense, config.mlp_bias};
    default:
      if (is_of_state(role)) return tensor_of_state(role, config, has_state);
      if (is_of_hyper(role)) return tensor_of_hyper(role, config);
      if (is_of_ngrams(role)) return tensor_of_ngrams(role, config, layer);
      return tensor_of_experts(role, config, has_experts);
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
                 : first.shape.rank() == 0       ? Shape{}
                 : first.shape.rank() == 1       ? Shape{rows}
                 : first.shape.rank() == 3       ? Shape{rows, first.shape[1], first.shape[2]}
                 : turned                        ? Shape{first.shape[1], rows}
                                                 : Shape{rows, first.shape[1]};
  const bool of_all = is_of_expert(role) && expert < 0;
  if (of_all) weight.shape = {config.experts->count, weight.shape[0], weight.shape[1]};
  if (head >= 0) weight.shape = {first.shape[1]};
  const bool bare = role == choice_bias || row.bare;
  std::optional<ModelTensor> bias;
  if (first.has_bias) {
    bias = weight;
    bias->name += bare ? "_bias" : ".bias";
    bias->shape = of_all ? Shape{config.experts->count, rows} : Shape{rows};
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
  if (row.name.find(kHead) != row.name.npos) {
    for (int64_t head = 0; head < tensor.shape[0]; ++head) {
      add_tensor(row, config, layer, {.head = head}, out);
    }
    return;
  }
  if (row.name.find(kStream) != row.name.npos) {
    for (int64_t stream = 0; stream + 1 < config.streams->count; ++stream) {
      add_tensor(row, config, layer, {.stream = stream}, out);
    }
    return;
  }
  if (row.name.find(kFile) != row.name.npos) {
    for (int64_t file = 0; file < config.ngrams->files; ++file) {
      add_tensor(row, config, layer, {.file = file}, out);
    }
    return;
  }
  if (row.name.find(kExpert) == row.name.npos) return add_tensor(row, config, layer, {}, out);
  for (int64_t expert = 0; expert < config.experts->count; ++expert) {
    add_tensor(row, config, layer, {.expert = expert}, out);
  }
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
                         role == ngram_table || role == ngram_conv;
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
