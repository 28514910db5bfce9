// The runtime that `fit` chooses a cache for, and what it does with scales.
#pragma once

#include <string>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "fit/fit_report.h"
#include "options/options.h"
#include "scales/rules/runtime_caches.h"
#include "scales/rules/serving.h"

namespace fp8kv {

struct FitRuntime {
  std::string text;  // "vLLM 0.33"
  ChosenRuntime chosen;
  const RuntimeCaches* caches;
  const Server* server;  // nullptr: no single command serves with this runtime
};

// The name that the runtime uses for a format.
std::string dtype_flag(const FitRuntime& runtime, const FitFormat& format);

// The runtime of --for. Throws a usage Error if that names several versions, or one whose caches
// are not known.
FitRuntime runtime_of(const FitCommandOptions& options);

// Takes scales of 1 if the runtime drops all others, and returns what it does; see
// FitSubject::dropped. Not for sparse attention, whose cache makes its own. Throws a usage Error if
// there would be a scale file to write.
std::string take_dropped(const Checkpoint& checkpoint, const ModelConfig& config,
                         const FitRuntime& runtime, FitCommandOptions& options, Log& log);

}  // namespace fp8kv
