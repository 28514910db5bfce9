#include "checkpoint/identity/model_identity.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "checkpoint/identity/identity_tensors.h"
#include "checkpoint/identity/kv_config.h"
#include "checkpoint/model_weights.h"
#include "config/families/tensor_table.h"
#include "core/numbers/dtype.h"

namespace fp8kv {
namespace {

// The most bytes read from all tensors except the embedding, and from the embedding.
constexpr uint64_t kSampledBytes = 900'000;
constexpr uint64_t kEmbeddingBytes = uint64_t(64) << 10;
constexpr uint64_t kSampledBlocks = 4;
// The most blocks read from experts, one for each. Models with more experts have some of them
// sampled.
constexpr uint64_t kMostExpertBlocks = 8192;
constexpr uint64_t kBlockUnit = 64;       // the size of a block is a multiple of this
constexpr uint64_t kRowBytes = 512;       // bytes read from one row of the embedding
constexpr size_t kSamples = 8;            // weights kept of each tensor
constexpr size_t kEmbeddingSamples = 64;  // weights kept of the embedding

std::string hex_of(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char byte : bytes) {
    out += kDigits[static_cast<uint8_t>(byte) >> 4];
    out += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return out;
}

// The digest of several tensors, with some weights of each.
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

// Concatenated blocks of a tensor, spread evenly over its data; all data of a small tensor.
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

// A part of every n-th row. n is a power of two, so that a model with added tokens is mostly
// sampled in the same rows as before.
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

// One block from every `stride`-th expert. The matrix and the place within it change from expert to
// expert.
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

// Whether the tensor makes the input of all layers.
bool joins_embedding(const ModelTensor& tensor) {
  const TensorRole role = tensor.parts.front().role;
  return role == TensorRole::positions || role == TensorRole::embed_up ||
         role == TensorRole::stream_in || role == TensorRole::embed_norm ||
         role == TensorRole::hidden_product || role == TensorRole::hidden_norm ||
         role == TensorRole::token_norm;
}

// Drafters may take the embedding of their target.
bool has_no_embedding(const ModelConfig& config, const std::vector<ModelTensor>& outer) {
  return config.drafter && std::none_of(outer.begin(), outer.end(), [](const ModelTensor& tensor) {
           return tensor.parts.front().role == TensorRole::embedding;
         });
}

// The blocks that are read: their size, and the experts that are sampled.
struct Blocks {
  size_t stride;  // every stride-th expert of a layer
  uint64_t bytes;
};

Blocks blocks_of(const ModelConfig& config, const std::vector<ModelTensor>& outer,
                 const std::vector<std::vector<ModelTensor>>& layers) {
  uint64_t n_blocks = outer.size() * kSampledBlocks, n_experts = 0;
  for (const std::vector<ModelTensor>& tensors : layers) {
    const auto of_experts = std::count_if(tensors.begin(), tensors.end(), is_of_experts);
    n_blocks += (tensors.size() - static_cast<size_t>(of_experts)) * kSampledBlocks;
    if (of_experts > 0) n_experts += static_cast<uint64_t>(sampled_experts_of(*config.experts));
  }
  const size_t stride =
      std::max((n_experts + kMostExpertBlocks - 1) / kMostExpertBlocks, uint64_t{1});
  n_blocks += n_experts / stride;
  return {stride, std::max(kSampledBytes / n_blocks / kBlockUnit, uint64_t{1}) * kBlockUnit};
}

// The embedding's own name, and the name that it is stored under. Tied models store one matrix
// under one of two names. Both are "" without an embedding.
struct EmbeddingNames {
  std::string own, stored;
};

EmbeddingNames add_embedding(const ModelWeights& weights, const ModelConfig& config,
                             const std::vector<ModelTensor>& outer, WeightsDigest& digest) {
  if (has_no_embedding(config, outer)) return {};
  EmbeddingNames names;
  names.own = weight_name(config, TensorRole::embedding);
  const bool has_own = weights.checkpoint().find(names.own) != nullptr;
  names.stored = has_own ? names.own : weight_name(config, TensorRole::lm_head);
  const auto embedding = std::find_if(outer.begin(), outer.end(), [&](const ModelTensor& tensor) {
    return tensor.name == names.stored;
  });
  FP8KV_ASSERT(embedding != outer.end());
  const Weight weight = weights.at(*embedding);
  digest.add("embedding", weight, sampled_embedding(weights, weight), kEmbeddingSamples);
  return names;
}

}  // namespace

ModelIdentity model_identity(const Checkpoint& checkpoint, const ModelConfig& config) {
  const ModelWeights weights(checkpoint, config.dtype);
  const std::vector<ModelTensor> outer = outer_tensors(config);
  std::vector<std::vector<ModelTensor>> layers;
  for (int64_t i = 0; i < config.n_layers(); ++i) layers.push_back(layer_tensors(config, i));
  const Blocks blocks = blocks_of(config, outer, layers);
  const auto add = [&](const ModelTensor& tensor, WeightsDigest& digest) {
    const Weight weight = weights.at(tensor);
    digest.add(tensor.name, weight, sampled_bytes(weights, weight, blocks.bytes), kSamples);
  };
  const auto add_experts_of = [&](int64_t i, const ModelTensor& first, WeightsDigest& digest) {
    const auto layer = static_cast<size_t>(i);
    const auto parts = expert_parts(weights, layers[layer], sampled_experts_of(*config.experts));
    digest.add(first.name, weights.at(first),
               sampled_experts(weights, parts, layer, blocks.stride, blocks.bytes), 4 * kSamples);
  };
  ModelIdentity identity;
  identity.config = kv_config(config);
  WeightsDigest rest;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    WeightsDigest layer;
    bool has_experts = false;
    for (const ModelTensor& tensor : layers[static_cast<size_t>(i)]) {
      const bool first = is_of_experts(tensor) && !has_experts;
      has_experts = has_experts || first;
      WeightsDigest& digest = decides_caches(config, i, tensor) ? layer : rest;
      if (first) add_experts_of(i, tensor, digest);
      if (!is_of_experts(tensor)) add(tensor, digest);
    }
    identity.layers.push_back(std::move(layer).done());
  }
  WeightsDigest of_embedding;
  const EmbeddingNames embedding = add_embedding(weights, config, outer, of_embedding);
  for (const ModelTensor& tensor : outer) {
    if (tensor.name == embedding.own || tensor.name == embedding.stored) continue;
    if (!weights.find(tensor)) continue;
    add(tensor, joins_embedding(tensor) ? of_embedding : rest);
  }
  identity.embedding = std::move(of_embedding).done();
  identity.rest = std::move(rest).done().digest;
  return identity;
}

}  // namespace fp8kv
