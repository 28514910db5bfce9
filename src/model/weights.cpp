#include "model/weights.h"

#include "base/error.h"
#include "checkpoint/architectures.h"

namespace fp8kv {

LayerWeights make_layer_weights(
    const ModelConfig& config, int64_t index, LayerPart part,
    const std::function<ConstTensorView(const std::string& name)>& find) {
  const TensorNames& names = tensor_names();
  const auto norm = [&](const std::string& pattern) {
    return find(TensorNames::in_layer(pattern, index) + ".weight");
  };
  const auto linear = [&](const std::string& pattern, bool bias) {
    const std::string name = TensorNames::in_layer(pattern, index);
    Linear made;
    made.weight = find(name + ".weight");
    if (bias) made.bias = find(name + ".bias");
    return made;
  };
  LayerWeights layer;
  layer.attn_norm = norm(names.attn_norm);
  layer.attn.q = linear(names.q, config.qkv_bias);
  layer.attn.k = linear(names.k, config.qkv_bias);
  layer.attn.v = linear(names.v, config.qkv_bias);
  if (config.qk_norm) layer.attn.head_norm = HeadNorm{norm(names.q_norm), norm(names.k_norm)};
  if (part == LayerPart::up_to_kv) return layer;
  layer.o = linear(names.o, config.o_bias);
  layer.ffn_norm = norm(names.ffn_norm);
  layer.gate = linear(names.gate, config.mlp_bias);
  layer.up = linear(names.up, config.mlp_bias);
  layer.down = linear(names.down, config.mlp_bias);
  return layer;
}

Tensor WeightLoader::upload(const std::string& name) const {
  const MappedTensor mapped = checkpoint_.map(name);
  return with_way_out(
      "free memory of the device, or use --device cpu: the weights have to fit", [&] {
        return with_context(cat("weight ", quote(name)),
                            [&] { return backend_.upload(mapped.view, mapped.keep_alive); });
      });
}

ConstTensorView WeightLoader::load(const std::string& name, std::vector<Tensor>& storage) const {
  storage.push_back(upload(name));
  return storage.back().view();
}

std::string WeightLoader::embedding_name(const Checkpoint& checkpoint) {
  const TensorNames& names = tensor_names();
  const bool own = checkpoint.find(names.embed + ".weight") != nullptr;
  return (own ? names.embed : names.lm_head) + ".weight";
}

Tensor WeightLoader::embedding() const {
  return upload(embedding_name(checkpoint_));
}

LayerWeights WeightLoader::layer(int64_t index) const {
  std::vector<Tensor> storage;
  LayerWeights layer =
      make_layer_weights(config_, index, LayerPart::whole,
                         [&](const std::string& name) { return load(name, storage); });
  layer.storage = std::move(storage);
  return layer;
}

HeadWeights WeightLoader::head() const {
  const TensorNames& names = tensor_names();
  HeadWeights head;
  head.norm = load(names.norm + ".weight", head.storage);
  const bool own = checkpoint_.find(names.lm_head + ".weight") != nullptr;
  const bool shared = config_.tied_embeddings || !own;
  if (shared) {
    head.storage.push_back(embedding());
    head.lm_head = head.storage.back().view();
  } else {
    head.lm_head = load(names.lm_head + ".weight", head.storage);
  }
  return head;
}

}  // namespace fp8kv
