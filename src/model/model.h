// The transformer: one layer, written once, for prefill and decode, calibration and inference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "core/config.h"
#include "model/weights.h"

namespace fp8kv {

enum class LayerPart {
  whole,
  up_to_kv  // stops once K and V are observed and stored: all that calibration wants of the last
};

// Scratch memory and the forward pass, for steps of up to `max_rows` rows and positions below
// `max_positions`. Holds no weights.
class Forward {
 public:
  Forward(Backend& backend, const ModelConfig& config, int64_t max_rows, int64_t max_positions);

  // x = rows of the embedding [vocab_size, dim].   ids [n] i32; x [n, dim] activation dtype.
  void embed(const ConstTensorView& embedding, const ConstTensorView& ids, const TensorView& x);

  // Runs layer `index` on x [n, dim], in place. With `magnitudes`, Q, K and V are observed as they
  // are cached (see RopeAppend).
  void layer(int64_t index, const LayerWeights& weights, const TensorView& x, const Batch& batch,
             const PagedKv& kv, const std::optional<TensorView>& magnitudes, LayerPart part);

  // logits [n_rows, vocab_size] f32 of the rows of x named by `rows` [n_rows] i32.
  void head(const HeadWeights& weights, const TensorView& x, const ConstTensorView& rows,
            const TensorView& logits);

  DType activation_dtype() const { return activation_; }

 private:
  TensorView scratch(const Tensor& buffer, int64_t rows, int64_t width) const;

  Backend& backend_;
  const ModelConfig& config_;
  DType activation_;
  Tensor rope_;                           // [max_positions, head_dim] f32
  Tensor normed_, q_, k_, v_, attended_;  // [max_rows, ...]
  Tensor gate_, up_;
};

}  // namespace fp8kv
