#include "model/layer_inputs.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "config/families/tensor_table.h"
#include "core/numbers/host_view.h"
#include "model/weights/weight_loader.h"

namespace fp8kv {
namespace {

ModelTensor outer_tensor(const ModelConfig& config, TensorRole role) {
  for (ModelTensor& tensor : outer_tensors(config)) {
    if (tensor.parts.front().role == role) return std::move(tensor);
  }
  assertion_failed("a tensor of this role", __FILE__, __LINE__);
}

}  // namespace

LayerInputs::LayerInputs(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                         EmbeddingTable table)
    : backend_(backend),
      config_(config),
      table_(checkpoint, config, backend,
             {outer_tensor(config, TensorRole::layer_embedding), config.layer_input_dim, table}) {
  const WeightLoader loader(checkpoint, config, backend);
  projection_ = *loader.outer(TensorRole::layer_projection);
  norm_weight_ = *loader.outer(TensorRole::layer_projection_norm);
  norm_.kind = config.block.norm;
  norm_.eps = static_cast<float>(config.norm_eps);
  norm_.weight_offset = config.block.norm_plus_one ? 1.0f : 0.0f;
  norm_.weight = norm_weight_.view();
}

void LayerInputs::reserve(int64_t rows) {
  if (rows <= max_rows_) return;
  const DType activation = backend_.activation_dtype(config_.dtype);
  inputs_ = backend_.allocate(activation, Shape{rows, config_.layer_input_dim});
  tokens_ = backend_.allocate(activation, Shape{rows, config_.layer_input_dim});
  ids_ = backend_.allocate(DType::i32, Shape{rows});
  max_rows_ = rows;
}

TensorView LayerInputs::of(const Step& step, const ConstTensorView& embedded, int64_t index) {
  const int64_t n = step.rows(), width = config_.layer_input_dim;
  reserve(n);
  const TensorView out = inputs_.first(n), tokens = tokens_.first(n), ids = ids_.first(n);
  const ConstTensorView all = projection_.view();
  const size_t skipped = static_cast<size_t>(index * width * config_.dim) * dtype_bytes(all.dtype);
  const ConstTensorView own{all.data + skipped, all.dtype, Shape{width, config_.dim}};
  backend_.linear(embedded, std::array{Projection{own, std::nullopt, out}});
  backend_.scale(out, 1.0f / std::sqrt(static_cast<float>(config_.dim)), 0.0f);
  backend_.norm(out, norm_, out);
  host_ids_.assign(step.host_ids().begin(), step.host_ids().end());
  for (int32_t& id : host_ids_) {
    const int64_t token = id < config_.layer_vocab_size ? id : 0;
    id = static_cast<int32_t>(token * config_.n_layers() + index);
  }
  backend_.copy_in(ids, host_view(host_ids_));
  table_.rows(host_ids_, ids, tokens);
  backend_.add(out, tokens, static_cast<float>(config_.layer_token_multiplier));
  backend_.scale(out, std::sqrt(0.5f), 0.0f);
  return out;
}

}  // namespace fp8kv
