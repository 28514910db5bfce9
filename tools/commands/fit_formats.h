// The cache formats that `fit` chooses from: those that the runtime takes and the model can have.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "core/config.h"
#include "fit/fit_report.h"
#include "scales/rules/runtime_caches.h"

namespace fp8kv {

// The formats in `asked`, canonical names; where it is empty, fp8_e4m3, int8_per_token_head and
// nvfp4 as far as they are possible, the others being said on `log`. Without scales yet.
// Throws a usage Error for a format that the runtime lacks or the model cannot have, and where
// none is left.
std::vector<FitFormat> fit_formats(const std::vector<std::string>& asked,
                                   const RuntimeCaches& runtime, const ModelConfig& config,
                                   Log& log);

}  // namespace fp8kv
