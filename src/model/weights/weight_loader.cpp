#include "model/weights/weight_loader.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "base/error.h"
#include "core/model/tensor_roles.h"
#include "model/weights/place_expert.h"
#include "model/weights/place_tensor.h"
#include "model/weights/weights.h"

namespace fp8kv {

Tensor WeightLoader::upload_file(const std::string& name) const {
  const MappedTensor mapped = checkpoint_.map(name);
  return with_way_out("free memory of the device, or run on the CPU: the weights have to fit", [&] {
    return with_context(cat("weight ", quote(name)),
                        [&] { return backend_.upload(mapped.view, mapped.keep_alive); });
  });
}

Tensor WeightLoader::upload(const ModelTensor& tensor) const {
  std::vector<Tensor> storage;
  upload(tensor, false, storage);
  return std::move(storage.back());
}

// Puts the memory that products need of a tensor into `storage`. A tensor without codes is its last
// entry.
FoundTensor WeightLoader::upload(const ModelTensor& tensor, bool may_have_codes,
                                 std::vector<Tensor>& storage) const {
  const Weight weight = weights_.at(tensor);
  if (!weight.stored) return {storage.emplace_back(upload_file(weight.name)).view()};
  weights_.check_values(weight);
  std::vector<Tensor> files, turned;
  const QuantisedMatrix matrix = matrix_of(*weight.stored, [&](const TensorEntry& entry) {
    return ConstTensorView(files.emplace_back(upload_file(entry.name)).view());
  });
  if (may_have_codes && !weight.stored->turned && may_be_codes(tensor)) {
    const bool of_expert = expert_matrix(tensor.parts.front().role) < 3;
    const WeightUse use = of_expert ? WeightUse::experts : WeightUse::linear;
    const auto codes = backend_.in_place(matrix, weight.dtype, use, turned);
    if (codes && has_parts(tensor, *codes)) {
      for (std::vector<Tensor>* from : {&files, &turned}) {
        std::move(from->begin(), from->end(), std::back_inserter(storage));
      }
      return {{nullptr, weight.dtype, weight.shape}, codes};
    }
  }
  Tensor decoded = with_context(cat("weight ", quote(weight.name)), [&] {
    return backend_.allocate(weight.dtype, decoded_tensor(tensor, *weight.stored).shape);
  });
  decode(tensor, *weight.stored, matrix, backend_, decoded.view());
  return {storage.emplace_back(std::move(decoded)).view(), {}, !weight.stored->turned};
}

ModelTensor embedding_tensor(const Checkpoint& checkpoint, const ModelConfig& config) {
  const std::string own = weight_name(config, TensorRole::embedding);
  const std::string name = checkpoint.find(own) ? own : weight_name(config, TensorRole::lm_head);
  for (ModelTensor& tensor : outer_tensors(config)) {
    if (tensor.name == name) return std::move(tensor);
  }
  assertion_failed("a row for the embedding", __FILE__, __LINE__);
}

Tensor WeightLoader::tensor(const ModelTensor& tensor) const {
  return upload(tensor);
}

std::optional<Tensor> WeightLoader::outer(TensorRole role) const {
  for (const ModelTensor& tensor : outer_tensors(config_)) {
    if (tensor.parts.front().role == role && !tensor.is_bias) return upload(tensor);
  }
  return std::nullopt;
}

std::vector<Tensor> WeightLoader::outers(TensorRole role) const {
  std::vector<Tensor> all;
  for (const ModelTensor& tensor : outer_tensors(config_)) {
    if (tensor.parts.front().role == role) all.push_back(upload(tensor));
  }
  return all;
}

Norm WeightLoader::embed_norm(std::vector<Tensor>& storage) const {
  std::optional<Norm> norm;
  for (const ModelTensor& tensor : outer_tensors(config_)) {
    if (tensor.parts.front().role != TensorRole::embed_norm) continue;
    Placing{config_, tensor.is_bias, storage.emplace_back(upload(tensor)).view()}.into(norm);
  }
  if (norm) return *norm;
  const auto allocate = [&](DType dtype, const Shape& shape) {
    return storage.emplace_back(backend_.allocate(dtype, shape)).view();
  };
  return plain_norm(config_, config_.dim, {{}, allocate, {}, &backend_});
}

LayerWeights WeightLoader::layer(int64_t index) const {
  std::vector<Tensor> storage, not_kept;
  const auto find = [&](const ModelTensor& tensor) {
    const auto stored = weights_.at(tensor).stored;
    const bool copied = is_copied(stored ? decoded_tensor(tensor, *stored) : tensor);
    return upload(tensor, true, copied ? not_kept : storage);
  };
  const auto allocate = [&](DType dtype, const Shape& shape) {
    return storage.emplace_back(backend_.allocate(dtype, shape)).view();
  };
  const auto numbers = [&](const ModelTensor& tensor) { return numbers_in(checkpoint_, tensor); };
  LayerWeights layer =
      make_layer_weights(config_, index, LayerPart::whole, {find, allocate, numbers, &backend_});
  layer.storage = std::move(storage);
  return layer;
}

Tensor WeightLoader::normed_rows(const ModelTensor& tensor) const {
  const Tensor rows = upload(tensor);
  const ConstTensorView view = rows.view();
  auto host = std::make_shared<std::vector<std::byte>>(view.bytes());
  backend_.download(view, *host);
  std::byte* const data = host->data();
  norm_rows({data, view.dtype, view.shape}, data);
  return backend_.upload({data, view.dtype, view.shape}, std::move(host));
}

namespace {

// Leaves out the rows of a product behind the first `count`.
void keep_rows(int64_t count, Linear& linear) {
  const ConstTensorView& all = linear.weight;
  linear.weight = {all.data, all.dtype, Shape{count, all.shape[1]}};
  if (linear.codes) linear.codes = rows_of(*linear.codes, 0, count);
}

}  // namespace

HeadWeights WeightLoader::head() const {
  const std::string lm_head = weight_name(config_, TensorRole::lm_head);
  const bool shared = config_.tied_embeddings;
  HeadWeights head;
  if (config_.attn_res_block > 0) {
    head.attn_res.emplace().sources = 1 + config_.attn_res_blocks(config_.n_layers());
  }
  for (const ModelTensor& tensor : outer_tensors(config_)) {
    const TensorRole role = tensor.parts.front().role;
    if (role_row(role).part == RolePart::embedding || (shared && tensor.name == lm_head)) continue;
    FoundTensor found;
    if (config_.block.head_normed && tensor.name == lm_head) {
      found.view = head.storage.emplace_back(normed_rows(tensor)).view();
    } else {
      found = upload(tensor, true, head.storage);
    }
    const Placing loaded{config_, tensor.is_bias, found.view, found.codes};
    if (role == TensorRole::norm) {
      loaded.into(head.norm);
      if (config_.block.last_norm_whole) head.norm->weight_offset = 0.0f;
    } else if (role >= TensorRole::hyper_head && role <= TensorRole::hyper_head_up) {
      place_hyper(role, loaded, head.hyper);
    } else if (role == TensorRole::head_res_norm) {
      loaded.into(head.attn_res.value().norm);
    } else if (role == TensorRole::head_res) {
      loaded.into(head.attn_res.value().product);
    } else if (role == TensorRole::stream_out) {
      loaded.into(head.streams.emplace_back());
    } else if (role == TensorRole::head_down) {
      loaded.into(head.down);
    } else {
      FP8KV_ASSERT(role == TensorRole::lm_head);
      loaded.into(head.lm_head);
      if (config_.stored_vocab > 0) keep_rows(config_.vocab_size, head.lm_head);
    }
  }
  if (config_.bare_norms) {
    const auto allocate = [&](DType dtype, const Shape& shape) {
      return head.storage.emplace_back(backend_.allocate(dtype, shape)).view();
    };
    head.norm = plain_norm(config_, config_.dim, {{}, allocate, {}, &backend_});
  }
  if (shared) {
    const ModelTensor tensor = embedding_tensor(checkpoint_, config_);
    head.storage.push_back(config_.block.head_normed ? normed_rows(tensor) : upload(tensor));
    head.lm_head.weight = head.storage.back().view();
  }
  return head;
}

}  // namespace fp8kv
