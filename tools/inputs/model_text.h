// The text that a command runs through a model.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "data/dataset.h"

namespace fp8kv {

// What the data needs of the model's tokenizer. A model without one can take tokenized data.
TextEncoder make_encoder(const Checkpoint& checkpoint, const ModelConfig& config);

// Tokens in a window: `seq_len`, or the model's context where that is shorter, which is said on
// `log`, or a usage Error where seq_len was `given`.
int64_t window_length(int64_t seq_len, bool given, const ModelConfig& config, Log& log);

}  // namespace fp8kv
