#include "checkpoint/model_identity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/error.h"
#include "checkpoint/model_weights.h"
#include "config/families/tensor_table.h"
#include "core/dtype.h"

namespace fp8kv {
namespace {

// What may be read of all tensors together but the embedding, and of that.
constexpr uint64_t kSampledBytes = 900'000;
constexpr uint64_t kEmbeddingBytes = uint64_t(64) << 10;
constexpr uint64_t kSampledBlocks = 4;
// One block of as many experts; of models that have more, of some.
constexpr uint64_t kMostExpertBlocks = 8192;
constexpr uint64_t kBlockUnit = 64;       // blocks are that many bytes, or several times as many
constexpr uint64_t kRowBytes = 512;       // of a row of the embedding
constexpr size_t kSamples = 8;            // weights that are kept of a tensor
constexpr size_t kEmbeddingSamples = 64;  // and of the embedding
constexpr size_t kDigestDigits = 16;

class ConfigNumbers {
 public:
  template <typename Value>
  void add(const std::string& key, const Value& value) {
    numbers_.push_back({key, cat(value)});
  }
  // Whole numbers without an exponent: "500000".
  void add(const std::string& key, double value) {
    const bool is_whole = value == std::floor(value) && std::abs(value) < 1e15;
    numbers_.push_back({key, is_whole ? cat(static_cast<int64_t>(value)) : cat(value)});
  }
  template <typename Value>
  void add_unless(const Value& usual, const std::string& key, const Value& value) {
    if (value != usual) add(key, value);
  }
  std::vector<ConfigNumber> sorted() && {
    std::sort(numbers_.begin(), numbers_.end(),
              [](const ConfigNumber& a, const ConfigNumber& b) { return a.key < b.key; });
    return std::move(numbers_);
  }

 private:
  std::vector<ConfigNumber> numbers_;
};

// "0-5 full, 6 window 4096": what `text_of` says of each layer, neighbours that are alike together;
// "full" where all layers are alike.
template <typename TextOf>
std::string by_layer(int64_t n_layers, const TextOf& text_of) {
  std::string out;
  for (int64_t first = 0, next = 0; first < n_layers; first = next) {
    const std::string text = text_of(first);
    while (next < n_layers && text_of(next) == text) ++next;
    if (next - first == n_layers) return text;
    const std::string layers = next - first > 1 ? cat(first, "-", next - 1) : cat(first);
    out += cat(out.empty() ? "" : ", ", layers, " ", text);
  }
  return out;
}

const char* rope_type(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::none:
      return "default";
    case RopeScaling::linear:
      return "linear";
    case RopeScaling::llama3:
      return "llama3";
    case RopeScaling::yarn:
      return "yarn";
    case RopeScaling::longrope:
      return "longrope";
  }
  return "";
}

// "1, 1.25".
std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(cat(value));
  return join(texts);
}

void add_rope(const RopeConfig& rope, const std::string& prefix, ConfigNumbers& out) {
  out.add(prefix + "rope_theta", rope.theta);
  out.add_unless(int64_t{0}, prefix + "rotary_dim", rope.rotary_dim);
  if (rope.pairs == RopePairs::neighbours) out.add(prefix + "rotated pairs", "neighbours");
  out.add_unless(0.0, prefix + "llama_4_scaling_beta", rope.q_growth);
  out.add_unless(0.0, prefix + "q_growth_from", rope.q_growth_from);
  if (!rope.turns) out.add(prefix + "floor_scale", rope.original_context);
  if (rope.scaling == RopeScaling::none) return;
  out.add(prefix + "rope_type", rope_type(rope.scaling));
  out.add(prefix + "factor", rope.factor);
  if (rope.scaling == RopeScaling::linear) return;
  out.add(prefix + "original_max_position_embeddings", rope.original_context);
  if (rope.scaling == RopeScaling::llama3) {
    out.add(prefix + "low_freq_factor", rope.low_freq_factor);
    out.add(prefix + "high_freq_factor", rope.high_freq_factor);
    return;
  }
  if (rope.scaling == RopeScaling::longrope) {
    out.add(prefix + "short_factor", numbers(rope.short_factors));
    out.add(prefix + "long_factor", numbers(rope.long_factors));
    out.add(prefix + "attention_factor", rope.attention_factor);
    return;
  }
  out.add(prefix + "beta_fast", rope.beta_fast);
  out.add(prefix + "beta_slow", rope.beta_slow);
  out.add(prefix + "truncate", rope.truncate);
  out.add(prefix + "attention_factor", rope.attention_factor);
}

void add_ropes(const ModelConfig& config, ConfigNumbers& out) {
  for (size_t i = 0; i < config.ropes.size(); ++i) {
    add_rope(config.ropes[i], i == 0 ? "" : cat("rope ", i, " "), out);
  }
  const auto rope_of = [&](int64_t layer) {
    return cat(config.layer_ropes[static_cast<size_t>(layer)]);
  };
  const std::string ropes = by_layer(config.n_layers(), rope_of);
  out.add_unless(std::string("0"), "rope of layers", ropes);
}

void add_layers(const ModelConfig& config, ConfigNumbers& out) {
  out.add("num_hidden_layers", config.n_layers());
  out.add("num_attention_heads", config.n_heads);
  out.add("num_key_value_heads",
          by_layer(config.n_layers(), [&](int64_t i) { return cat(config.layer(i).n_kv_heads); }));
  out.add("head_dim", by_layer(config.n_layers(), [&](int64_t i) {
            const LayerDescription& layer = config.layer(i);
            return layer.k_head_dim == layer.v_head_dim
                       ? cat(layer.k_head_dim)
                       : cat(layer.k_head_dim, " of V ", layer.v_head_dim);
          }));
  out.add("attention", by_layer(config.n_layers(), [&](int64_t i) {
            const LayerDescription& layer = config.layer(i);
            const std::string reach = layer.reach > 0 ? cat(" ", layer.reach) : "";
            const std::string of = layer.cache_of != i ? cat(" of layer ", layer.cache_of) : "";
            return cat(mixing_name(layer.mixing), reach, of);
          }));
}

void add_block(const BlockConfig& block, ConfigNumbers& out) {
  const BlockConfig usual;
  const auto choice = [&](const char* key, auto chosen, auto normal,
                          std::initializer_list<const char*> names) {
    if (chosen != normal) out.add(key, *std::next(names.begin(), static_cast<int>(chosen)));
  };
  choice("norm", block.norm, usual.norm, {"rms", "layer"});
  choice("norm_place", block.norm_place, usual.norm_place,
         {"before", "after", "around", "after_add"});
  choice("qk_norm", block.qk_norm, usual.qk_norm,
         {"none", "per_head", "whole", "own_heads", "plain"});
  out.add_unless(usual.qk_norm_bias, "qk_norm_bias", block.qk_norm_bias);
  choice("score_bias", block.score_bias, usual.score_bias, {"none", "alibi", "alibi_bf16"});
  choice("hidden_act", block.activation, usual.activation,
         {"silu", "gelu_tanh", "gelu_erf", "relu", "relu_squared"});
  out.add_unless(usual.norm_plus_one, "norm_plus_one", block.norm_plus_one);
  out.add_unless(usual.norm_bias, "norm_bias", block.norm_bias);
  out.add_unless(usual.parallel, "parallel", block.parallel);
  out.add_unless(usual.shared_norm, "shared_norm", block.shared_norm);
  out.add_unless(usual.gated, "gated", block.gated);
  out.add_unless(usual.embed_multiplier, "embed_multiplier", block.embed_multiplier);
  out.add_unless(usual.residual_multiplier, "residual_multiplier", block.residual_multiplier);
  out.add_unless(usual.attention_scale, "attention_scale", block.attention_scale);
  out.add_unless(usual.attention_scale_by_layer, "attention_scale_by_layer",
                 block.attention_scale_by_layer);
  out.add_unless(usual.score_cap, "attn_logit_softcapping", block.score_cap);
}

void add_experts(const ModelConfig& config, ConfigNumbers& out) {
  if (!config.experts) return;
  const ExpertsConfig& experts = *config.experts;
  const ExpertsConfig usual;
  const Routing& routing = experts.routing;
  out.add("num_experts", experts.count);
  out.add("num_experts_per_tok", routing.per_token);
  out.add("moe_intermediate_size", experts.hidden_dim);
  out.add("feed_forward", by_layer(config.n_layers(), [&](int64_t i) {
            return std::string(feed_forward_name(config.layer(i).feed_forward));
          }));
  constexpr const char* kScores[] = {"softmax", "softmax_of_chosen", "sigmoid"};
  out.add("router", kScores[static_cast<size_t>(routing.score)]);
  out.add_unless(usual.routing.normalise, "norm_topk_prob", routing.normalise);
  out.add_unless(usual.routing.epsilon, "router_epsilon", routing.epsilon);
  out.add_unless(usual.routing.scale, "routed_scaling_factor", routing.scale);
  out.add_unless(usual.routing.groups, "n_group", routing.groups);
  out.add_unless(usual.routing.groups_kept, "topk_group", routing.groups_kept);
  out.add_unless(usual.routing.weigh_input, "weigh_input", routing.weigh_input);
  out.add_unless(usual.choice_bias, "choice_bias", experts.choice_bias);
  out.add_unless(usual.shared_hidden_dim, "shared_expert_intermediate_size",
                 experts.shared_hidden_dim);
  out.add_unless(usual.shared_gated, "shared_expert_gate", experts.shared_gated);
}

std::string hex_of(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char byte : bytes) {
    out += kDigits[static_cast<uint8_t>(byte) >> 4];
    out += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return out;
}

// The digest of several tensors, and some weights of each.
class WeightsDigest {
 public:
  void add(std::string_view name, const Weight& weight, const std::string& bytes,
           size_t n_samples) {
    digest_.add(cat(name, " ", dtype_name(weight.dtype), " ", weight.shape.text(), "\n"));
    digest_.add(bytes);
    if (!samples_.empty()) samples_ += ' ';
    const size_t width = dtype_bytes(weight.dtype);
    const size_t n = bytes.size() / width;
    const size_t kept = std::min(n, n_samples);
    for (size_t i = 0; i < kept; ++i) {
      samples_ += hex_of(std::string_view(bytes).substr(i * n / kept * width, width));
    }
  }

  WeightsIdentity done() && {
    return {digest_.hex().substr(0, kDigestDigits), std::move(samples_)};
  }

 private:
  Sha256 digest_;
  std::string samples_;
};

// Blocks of a tensor spread evenly over its data, one behind the other; all of a small one.
std::string sampled_bytes(const ModelWeights& weights, const Weight& weight, uint64_t block_bytes) {
  const uint64_t size = weight.bytes();
  if (size <= kSampledBlocks * block_bytes) return weights.read(weight, 0, size);
  std::string bytes;
  for (uint64_t block = 0; block < kSampledBlocks; ++block) {
    const uint64_t offset = (size - block_bytes) / (kSampledBlocks - 1) * block;
    bytes += weights.read(weight, offset / sizeof(double) * sizeof(double), block_bytes);
  }
  return bytes;
}

// A part of every so many rows. That number is a power of two, so that a model to which tokens were
// added is mostly sampled in the same rows as before.
std::string sampled_embedding(const ModelWeights& weights, const Weight& weight) {
  const auto rows = static_cast<uint64_t>(weight.shape[0]);
  const uint64_t row_bytes = weight.bytes() / rows;
  const uint64_t part = std::min(row_bytes, kRowBytes);
  const uint64_t parts = row_bytes / part;
  const uint64_t stride = std::bit_ceil((rows * part + kEmbeddingBytes - 1) / kEmbeddingBytes);
  std::string bytes;
  for (uint64_t i = 0; i * stride < rows; ++i) {
    bytes += weights.read(weight, i * stride * row_bytes + i % parts * part, part);
  }
  return bytes;
}

bool is_of_experts(const ModelTensor& tensor) {
  const TensorRole role = tensor.parts.front().role;
  return role == TensorRole::expert_gate || role == TensorRole::expert_up ||
         role == TensorRole::expert_down;
}

// One matrix of an expert, in bytes of a weight.
struct ExpertPart {
  Weight weight;
  uint64_t offset;
  uint64_t bytes;
};

// The matrices of each expert of a layer, in tensors of their own or in those of all experts.
std::vector<std::vector<ExpertPart>> expert_parts(const ModelWeights& weights,
                                                  const std::vector<ModelTensor>& tensors,
                                                  int64_t n_experts) {
  std::vector<std::vector<ExpertPart>> parts(static_cast<size_t>(n_experts));
  for (const ModelTensor& tensor : tensors) {
    if (!is_of_experts(tensor)) continue;
    const Weight weight = weights.at(tensor);
    const uint64_t bytes = weight.bytes();
    if (tensor.expert >= 0) {
      parts[static_cast<size_t>(tensor.expert)].push_back({weight, 0, bytes});
      continue;
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].push_back({weight, i * (bytes / parts.size()), bytes / parts.size()});
    }
  }
  return parts;
}

// A block of every `stride`-th expert, of its matrices in turn, and of another place in each.
std::string sampled_experts(const ModelWeights& weights,
                            const std::vector<std::vector<ExpertPart>>& experts, size_t first,
                            size_t stride, uint64_t block_bytes) {
  constexpr uint64_t kPlaces = 8;
  std::string bytes;
  for (size_t i = first % stride; i < experts.size(); i += stride) {
    const ExpertPart& part = experts[i][(first + i) % experts[i].size()];
    const uint64_t block = std::min(part.bytes, block_bytes);
    const uint64_t at = (part.bytes - block) / (kPlaces - 1) * (5 * i % kPlaces);
    bytes += weights.read(part.weight, part.offset + at / sizeof(double) * sizeof(double), block);
  }
  return bytes;
}

// K and V, and what they are made from in their own layer.
bool makes_kv(const ModelTensor& tensor) {
  return std::any_of(tensor.parts.begin(), tensor.parts.end(), [](const TensorPart& part) {
    return part.role == TensorRole::attn_norm || part.role == TensorRole::k ||
           part.role == TensorRole::v || part.role == TensorRole::k_norm;
  });
}

// All layers read what these give.
bool joins_embedding(const ModelTensor& tensor) {
  const TensorRole role = tensor.parts.front().role;
  return role == TensorRole::positions || role == TensorRole::embed_up;
}

int64_t last_cache(const ModelConfig& config) {
  int64_t last = config.n_layers() - 1;
  while (last > 0 && !config.writes_cache(last)) --last;
  return last;
}

}  // namespace

std::vector<ConfigNumber> kv_config(const ModelConfig& config) {
  ConfigNumbers numbers;
  numbers.add("torch_dtype", torch_name(config.dtype));
  numbers.add("hidden_size", config.dim);
  numbers.add("intermediate_size", config.hidden_dim);
  numbers.add("rms_norm_eps", config.norm_eps);
  numbers.add_unless(int64_t{0}, "word_embed_proj_dim", config.embed_dim);
  numbers.add_unless(int64_t{0}, "learned_positions", config.position_rows);
  numbers.add_unless(int64_t{0}, "position_offset", config.position_offset);
  numbers.add_unless(false, "qkv_bias", config.qkv_bias);
  numbers.add_unless(false, "o_bias", config.o_bias);
  numbers.add_unless(false, "mlp_bias", config.mlp_bias);
  add_layers(config, numbers);
  add_ropes(config, numbers);
  add_block(config.block, numbers);
  add_experts(config, numbers);
  return std::move(numbers).sorted();
}

ModelIdentity model_identity(const Checkpoint& checkpoint, const ModelConfig& config) {
  const ModelWeights weights(checkpoint, config.dtype);
  std::vector<std::vector<ModelTensor>> layers;
  const std::vector<ModelTensor> outer = outer_tensors(config);
  uint64_t n_blocks = outer.size() * kSampledBlocks, n_experts = 0;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    const std::vector<ModelTensor>& tensors = layers.emplace_back(layer_tensors(config, i));
    const auto of_experts = std::count_if(tensors.begin(), tensors.end(), is_of_experts);
    n_blocks += (tensors.size() - static_cast<size_t>(of_experts)) * kSampledBlocks;
    if (of_experts > 0) n_experts += static_cast<uint64_t>(config.experts->count);
  }
  const size_t stride =
      std::max((n_experts + kMostExpertBlocks - 1) / kMostExpertBlocks, uint64_t{1});
  n_blocks += n_experts / stride;
  const uint64_t block_bytes =
      std::max(kSampledBytes / n_blocks / kBlockUnit, uint64_t{1}) * kBlockUnit;
  const auto add = [&](const ModelTensor& tensor, WeightsDigest& digest) {
    const Weight weight = weights.at(tensor);
    digest.add(tensor.name, weight, sampled_bytes(weights, weight, block_bytes), kSamples);
  };
  const auto add_experts_of = [&](int64_t i, const ModelTensor& first, WeightsDigest& digest) {
    const auto layer = static_cast<size_t>(i);
    const auto parts = expert_parts(weights, layers[layer], config.experts->count);
    digest.add(first.name, weights.at(first),
               sampled_experts(weights, parts, layer, stride, block_bytes), 4 * kSamples);
  };
  ModelIdentity identity;
  identity.config = kv_config(config);
  WeightsDigest rest;
  const int64_t last = last_cache(config);
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    WeightsDigest layer;
    bool has_experts = false;
    for (const ModelTensor& tensor : layers[static_cast<size_t>(i)]) {
      const bool first = is_of_experts(tensor) && !has_experts;
      has_experts = has_experts || first;
      if (first) add_experts_of(i, tensor, i < last ? layer : rest);
      if (is_of_experts(tensor)) continue;
      add(tensor, i < last || (i == last && makes_kv(tensor)) ? layer : rest);
    }
    identity.layers.push_back(std::move(layer).done());
  }
  // Tied models store one matrix under either name.
  const std::string own = weight_name(config, TensorRole::embedding);
  const std::string name = checkpoint.find(own) ? own : weight_name(config, TensorRole::lm_head);
  const auto embedding = std::find_if(
      outer.begin(), outer.end(), [&](const ModelTensor& tensor) { return tensor.name == name; });
  FP8KV_ASSERT(embedding != outer.end());
  const Weight embeddings = weights.at(*embedding);
  WeightsDigest of_embedding;
  of_embedding.add("embedding", embeddings, sampled_embedding(weights, embeddings),
                   kEmbeddingSamples);
  for (const ModelTensor& tensor : outer) {
    if (tensor.name == name || tensor.name == own || !weights.find(tensor)) continue;
    add(tensor, joins_embedding(tensor) ? of_embedding : rest);
  }
  identity.embedding = std::move(of_embedding).done();
  identity.rest = std::move(rest).done().digest;
  return identity;
}

}  // namespace fp8kv
