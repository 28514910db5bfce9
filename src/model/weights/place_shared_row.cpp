#include "model/weights/place_shared_row.h"

#include "base/error.h"

namespace fp8kv {
namespace {

SharedRowWeights& shared_row_of(LayerWeights& layer) {
  return layer.shared_row ? *layer.shared_row : layer.shared_row.emplace();
}

PoolWeights& pool_weights_of(LayerWeights& layer) {
  SharedRowWeights& row = shared_row_of(layer);
  return row.pool ? *row.pool : row.pool.emplace();
}

}  // namespace

bool place_shared_row(TensorRole role, const Placing& tensor, LayerWeights& layer) {
  if (!tensor.config.shared_row) return false;
  const SharedRowConfig& row = *tensor.config.shared_row;
  switch (role) {
    case TensorRole::q_down:
      tensor.into(shared_row_of(layer).q_down);
      return true;
    case TensorRole::q_down_norm:
      tensor.into(shared_row_of(layer).q_down_norm);
      return true;
    case TensorRole::o_down:
      shared_row_of(layer).o_down = {
          tensor.view.data, tensor.view.dtype,
          Shape{row.o_groups, row.o_rank,
                tensor.view.shape.elements() / row.o_groups / row.o_rank}};
      return true;
    case TensorRole::pool_rows:
      tensor.into(pool_weights_of(layer).rows);
      return true;
    case TensorRole::pool_gate:
      tensor.into(pool_weights_of(layer).gate);
      return true;
    case TensorRole::pool_bias:
      pool_weights_of(layer).bias = tensor.view;
      return true;
    case TensorRole::pool_norm:
      tensor.into(pool_weights_of(layer).norm);
      return true;
    default:
      return false;
  }
}

}  // namespace fp8kv
