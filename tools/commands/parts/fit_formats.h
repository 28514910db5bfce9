// The cache formats that `fit` chooses from: those that both runtime and model support.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "core/model/config.h"
#include "fit/fit_report.h"
#include "scales/rules/runtime_caches.h"

namespace fp8kv {

// The formats in `asked`, canonical names, without scales yet. If `asked` is empty: those of
// fp8_e4m3, int8_per_token_head and nvfp4 that are possible. The others are noted on `log`.
// Throws a usage Error for a format that the runtime or the model does not support, and if no
// format is left.
std::vector<FitFormat> fit_formats(const std::vector<std::string>& asked,
                                   const RuntimeCaches& runtime, const ModelConfig& config,
                                   Log& log);

}  // namespace fp8kv
