// The experts that tables give each token: see ExpertsConfig::table_layers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "model/step.h"

namespace fp8kv {

class ExpertTables {
 public:
  // Reads the tables of all layers that have one. Throws if a table is missing, has another shape
  // than [vocab_size, per_token], or does not name different experts for each token.
  ExpertTables(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend);

  // The experts of the step's tokens, in rising order; nothing for a layer without a table. Valid
  // until the next call.   [rows, per_token] i32
  std::optional<ConstTensorView> of(const Step& step, int64_t index);

 private:
  Backend& backend_;
  const int64_t per_token_;
  std::vector<std::vector<int32_t>> tables_;  // [table_layers][vocab_size * per_token]
  std::vector<int32_t> host_ids_;
  Tensor ids_;  // [any, per_token] i32
};

}  // namespace fp8kv
