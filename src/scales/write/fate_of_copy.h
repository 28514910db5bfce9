// Whether a runtime would use the scales of a copy that inject makes.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/scales/copy_fate.h"
#include "scales/rules/runtime_choice.h"

namespace fp8kv {

// Goes by the rules of the runtime for this family. Reads headers and configs only. For a model
// that inject refuses, returns `used`: inject says why.
CopyFate fate_of_copy(const Checkpoint& checkpoint, const ModelConfig& config,
                      const ChosenRuntime& runtime);

}  // namespace fp8kv
