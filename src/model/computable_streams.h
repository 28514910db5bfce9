// A part of check_computable: several residual streams, and what goes around a layer's blocks.
// Internal to model.
#pragma once

#include <string>

#include "core/model/config.h"

namespace fp8kv {

// Throws the error of check_computable: a model has what was found, where something else is
// expected.
[[noreturn]] void refuse_computing(const ModelConfig& config, const std::string& found,
                                   const std::string& expected);

// Throws if gate cuts, LAuReL, streams, hyper-connections or n-grams are where the forward pass
// does not compute them.
void check_streams_computable(const ModelConfig& config);

}  // namespace fp8kv
