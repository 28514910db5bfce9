#include "model/weights.h"

#include "io/architectures.h"

namespace fp8kv {

ConstTensorView WeightLoader::load(const std::string& name, std::vector<Tensor>& storage) const {
  const MappedTensor mapped = checkpoint_.map(name);
  storage.push_back(backend_.upload(mapped.view, mapped.keep_alive));
  return storage.back().view();
}

Linear WeightLoader::load_linear(const std::string& name, bool bias,
                                 std::vector<Tensor>& storage) const {
  Linear linear;
  linear.weight = load(name + ".weight", storage);
  if (bias) linear.bias = load(name + ".bias", storage);
  return linear;
}

Tensor WeightLoader::embedding() const {
  const TensorNames& names = tensor_names();
  // Tied models may store the shared matrix under either name.
  const bool own = checkpoint_.find(names.embed + ".weight") != nullptr;
  const MappedTensor mapped = checkpoint_.map((own ? names.embed : names.lm_head) + ".weight");
  return backend_.upload(mapped.view, mapped.keep_alive);
}

LayerWeights WeightLoader::layer(int64_t index) const {
  const TensorNames& names = tensor_names();
  const auto at = [&](const std::string& pattern) { return TensorNames::in_layer(pattern, index); };
  LayerWeights layer;
  std::vector<Tensor>& storage = layer.storage;
  layer.attn_norm = load(at(names.attn_norm) + ".weight", storage);
  layer.q = load_linear(at(names.q), config_.qkv_bias, storage);
  layer.k = load_linear(at(names.k), config_.qkv_bias, storage);
  layer.v = load_linear(at(names.v), config_.qkv_bias, storage);
  layer.o = load_linear(at(names.o), config_.o_bias, storage);
  layer.ffn_norm = load(at(names.ffn_norm) + ".weight", storage);
  layer.gate = load_linear(at(names.gate), config_.mlp_bias, storage);
  layer.up = load_linear(at(names.up), config_.mlp_bias, storage);
  layer.down = load_linear(at(names.down), config_.mlp_bias, storage);
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
