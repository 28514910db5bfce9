// Whether a runtime would use the scales of a copy that inject makes.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "scales/rules/runtime_choice.h"

namespace fp8kv {

// Returns what the runtime does, if it is known to serve every copy of this model without its
// scales, or to stop at them: "drops the scales of MLA: an FP8 cache runs with 1". Otherwise
// returns
// "". Reads headers and configs only. For a model that inject refuses, also returns "": inject says
// why.
std::string dropped_scales(const Checkpoint& checkpoint, const ModelConfig& config,
                           const ChosenRuntime& runtime);

}  // namespace fp8kv
