#include "model/weights.h"

#include "base/error.h"

namespace fp8kv {

namespace {

// Rows of a weight or of a bias, where there are more in the tensor.
ConstTensorView rows_of(const ConstTensorView& view, const TensorPart& part) {
  Shape shape = view.shape.rank() == 1 ? Shape{part.rows} : Shape{part.rows, view.shape[1]};
  const auto row_bytes = view.bytes() / static_cast<size_t>(view.shape[0]);
  return {view.data + static_cast<size_t>(part.first_row) * row_bytes, view.dtype, shape};
}

void place(TensorRole role, bool is_bias, const ConstTensorView& view, LayerWeights& layer) {
  const auto linear = [&](Linear& to) {
    if (is_bias) {
      to.bias = view;
    } else {
      to.weight = view;
    }
  };
  const auto head_norm = [&]() -> HeadNorm& {
    if (!layer.attn.head_norm) layer.attn.head_norm.emplace();
    return *layer.attn.head_norm;
  };
  switch (role) {
    case TensorRole::attn_norm:
      layer.attn_norm = view;
      return;
    case TensorRole::q:
      return linear(layer.attn.q);
    case TensorRole::k:
      return linear(layer.attn.k);
    case TensorRole::v:
      return linear(layer.attn.v);
    case TensorRole::q_norm:
      head_norm().q = view;
      return;
    case TensorRole::k_norm:
      head_norm().k = view;
      return;
    case TensorRole::o:
      return linear(layer.o);
    case TensorRole::ffn_norm:
      layer.ffn_norm = view;
      return;
    case TensorRole::gate:
      return linear(layer.gate);
    case TensorRole::up:
      return linear(layer.up);
    case TensorRole::down:
      return linear(layer.down);
    case TensorRole::embedding:
    case TensorRole::norm:
    case TensorRole::lm_head:
      break;
  }
  FP8KV_ASSERT(role == TensorRole::down);  // the others are in no layer
}

bool comes_after_kv(const ModelTensor& tensor) {
  return tensor.parts.front().role > TensorRole::k_norm;
}

}  // namespace

std::vector<ModelTensor> needed_tensors(const ModelConfig& config, int64_t index, LayerPart part) {
  std::vector<ModelTensor> tensors = layer_tensors(config, index);
  if (part == LayerPart::up_to_kv) std::erase_if(tensors, comes_after_kv);
  return tensors;
}

LayerWeights make_layer_weights(
    const ModelConfig& config, int64_t index, LayerPart part,
    const std::function<ConstTensorView(const std::string& name)>& find) {
  LayerWeights layer;
  for (const ModelTensor& tensor : needed_tensors(config, index, part)) {
    const ConstTensorView view = find(tensor.name);
    for (const TensorPart& each : tensor.parts) {
      place(each.role, tensor.is_bias, rows_of(view, each), layer);
    }
  }
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

std::string embedding_name(const Checkpoint& checkpoint, const ModelConfig& config) {
  const std::string own = weight_name(config, TensorRole::embedding);
  return checkpoint.find(own) ? own : weight_name(config, TensorRole::lm_head);
}

Tensor WeightLoader::embedding() const {
  return upload(embedding_name(checkpoint_, config_));
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
  const std::string lm_head = weight_name(config_, TensorRole::lm_head);
  HeadWeights head;
  head.norm = load(weight_name(config_, TensorRole::norm), head.storage);
  const bool own = checkpoint_.find(lm_head) != nullptr;
  const bool shared = config_.tied_embeddings || !own;
  if (shared) {
    head.storage.push_back(embedding());
    head.lm_head = head.storage.back().view();
  } else {
    head.lm_head = load(lm_head, head.storage);
  }
  return head;
}

}  // namespace fp8kv
