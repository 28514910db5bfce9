// Digests the logits of a model in 16 or 32 bit. Two models are bit-equal on a text if their
// digests are equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"

namespace fp8kv {

// SHA-256 over the logits of all tokens in the windows, with a cache in the model's own dtype.
// Reads each weight once.
std::string logits_digest(const ModelOnBackend& model,
                          const std::vector<std::vector<int32_t>>& windows, int threads, Log& log);

}  // namespace fp8kv
