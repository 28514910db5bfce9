// Turns tokens into rows of the residual stream: the only way in.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "model/expert_tables.h"
#include "model/layer_inputs.h"
#include "model/ngram_inputs.h"
#include "model/row_table.h"
#include "model/step.h"

namespace fp8kv {

class Embedding {
 public:
  // REQUIRES the checkpoint to have passed read_model_config, and to outlive this.
  Embedding(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
            EmbeddingTable table);

  // x [rows, dim] activation dtype = the embeddings of the step's tokens, times the model's
  // multiplier. Projects them to `dim` if their rows have another size, adds the rows of their
  // positions if the model has such rows, and norms the sum if the model has a norm for it. With
  // several streams, x is [rows, streams * dim].
  void embed(const Step& step, const TensorView& x);

  // The input that layer `index` has beside the stream, for layers with such an input: its
  // per-layer embeddings, or the rows of its n-grams. Valid until the next call.
  //   [rows, layer_input_dim or NgramConfig::dim] activation dtype
  // Or the experts of each token, if a table gives them.   [rows, per_token] i32
  std::optional<ConstTensorView> layer_input(const Step& step, int64_t index);

  std::vector<const Tensor*> weights() const;  // all held tensors

 private:
  void embed_tokens(const Step& step, const TensorView& x);
  TensorView embedded(const Step& step);
  void embed_rows(const Step& step, int64_t first, const TensorView& x);
  void add_positions(const Step& step, int64_t first, const TensorView& x);

  Backend& backend_;
  DType activation_;
  int64_t dim_;
  float multiplier_;
  RowTable table_;                   // [vocab_size, embed_dim]
  std::optional<Tensor> up_;         // [dim, embed_dim]
  std::optional<Tensor> positions_;  // [position_rows, dim]
  int64_t position_offset_;
  bool repeats_;  // every stream begins as the embedding
  std::optional<Norm> norm_;
  std::vector<Tensor> norm_weights_;
  Tensor tokens_;  // [kRowsAtOnce, embed_dim]: rows before `up_`
  std::optional<LayerInputs> inputs_;
  std::optional<NgramInputs> ngrams_;
  std::optional<ExpertTables> tables_;
  std::vector<Tensor> streams_;  // [dim, dim]: of each stream but the first
  Tensor stream_;                // [rows, dim]: one of these
  Tensor embedded_;              // [rows, dim]: on the way to a layer's input, or to streams
  Tensor placed_;                // [kRowsAtOnce, dim]: rows of `positions_`
};

}  // namespace fp8kv
