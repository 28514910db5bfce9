// A model that windows of tokens run through, and the backend that computes it.
#pragma once

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"

namespace fp8kv {

// References alone: the three objects must outlive what is made from them.
struct ModelOnBackend {
  const Checkpoint& checkpoint;  // where its weights are
  const ModelConfig& config;     // how it computes
  Backend& backend;
};

}  // namespace fp8kv
