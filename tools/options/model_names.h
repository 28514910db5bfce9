// Turns names of models and scales, such as hub names, into paths.
#pragma once

#include "options/options.h"

namespace fp8kv {

// Replaces every model in the options, and every source that can be one, by its path. Throws the
// errors of find_model.
void find_models(Options& options);

}  // namespace fp8kv
