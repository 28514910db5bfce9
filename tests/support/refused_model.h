// A tiny model that a test changes until the forward pass refuses it.
#pragma once

#include <functional>
#include <string>

#include "core/model/config.h"
#include "model/computable.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"

namespace fp8kv::test {

inline ModelConfig tiny_model() {
  return model_of(tiny_config());
}

// The error of check_computable for a tiny model with this change.
inline std::string refusal(const std::function<void(ModelConfig&)>& change) {
  ModelConfig config = tiny_model();
  change(config);
  return error_of([&] { check_computable(config); });
}

}  // namespace fp8kv::test
