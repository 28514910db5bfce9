// The tokens that a sparse indexer chose for each row. Layers without an indexer reuse the choice
// of the last layer that has one, so it lives from layer to layer.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "core/model/config.h"

namespace fp8kv {

struct ChosenSizes {
  int64_t most_rows = 0;  // of a step
  // Rows of all steps, for callers that run every step through a layer before the next layer.
  int64_t all_rows = 0;
  int64_t max_positions = 0;
};

class ChosenTokens {
 public:
  ChosenTokens() = default;
  // Takes no memory unless contexts can be longer than what the model's indexer chooses.
  ChosenTokens(Backend& backend, const ModelConfig& config, const ChosenSizes& sizes);

  // The choice for rows [first, first + n) of all rows; without data if nothing is chosen.
  // See AttentionOptions::chosen
  TensorView rows(int64_t first, int64_t n) const;

  // Takes over the choices of `other`, which has the same sizes.
  void copy(Backend& backend, const ChosenTokens& other);

  uint64_t bytes() const { return memory_.view().data == nullptr ? 0 : memory_.view().bytes(); }

 private:
  // [rows, most_blocks] i32, or [rows, n_heads, most_blocks]: see IndexerConfig
  Tensor memory_;
  bool keeps_all_ = false;  // later layers read it
};

}  // namespace fp8kv
