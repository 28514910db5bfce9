// The inputs that layers have beside the residual stream: Gemma 4's per-layer embeddings.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "model/row_table.h"
#include "model/step.h"

namespace fp8kv {

class LayerInputs {
 public:
  // REQUIRES a model with layer_input_dim, and what RowTable requires.
  LayerInputs(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
              EmbeddingTable table);

  // The input of layer `index` for the step's tokens; `embedded` [rows, dim] are their embeddings.
  // It is (norm(embedding * projection / sqrt(dim)) + row of the token) / sqrt(2). Tokens without a
  // row take token 0's row. Valid until the next call.
  //   [rows, layer_input_dim] activation dtype
  TensorView of(const Step& step, const ConstTensorView& embedded, int64_t index);

  std::vector<const Tensor*> weights() const {
    return {&table_.table(), &projection_, &norm_weight_};
  }

 private:
  void reserve(int64_t rows);

  Backend& backend_;
  const ModelConfig& config_;
  RowTable table_;      // [layer_vocab_size * n_layers, layer_input_dim]
  Tensor projection_;   // [n_layers * layer_input_dim, dim]
  Tensor norm_weight_;  // [layer_input_dim]
  Norm norm_;
  int64_t max_rows_ = 0;    // rows of the buffers below
  Tensor inputs_, tokens_;  // [max_rows_, layer_input_dim]
  Tensor ids_;              // [max_rows_] i32
  std::vector<int32_t> host_ids_;
};

}  // namespace fp8kv
