// The cache formats that `fit` chooses from: runtime, model and options support each of them.
#pragma once

#include <vector>

#include "base/log.h"
#include "core/model/config.h"
#include "fit/fit_report.h"
#include "options/options.h"
#include "scales/rules/runtime_caches.h"

namespace fp8kv {

// The formats of --kv-cache-dtype, canonical names, without scales yet. Without the flag: those of
// fp8_e4m3, int8_per_token_head and nvfp4 that are possible with the policy and, for --out, have
// scales to write. The others are noted on `log`.
// Throws a usage Error for a format that the runtime or the model does not support, if no format is
// left, and if --out is given but every format makes its own scales.
std::vector<FitFormat> fit_formats(const FitCommandOptions& options, const RuntimeCaches& runtime,
                                   const ModelConfig& config, Log& log);

}  // namespace fp8kv
