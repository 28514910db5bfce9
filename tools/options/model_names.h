// Models and scales by name: what was given becomes the path that is meant.
#pragma once

#include "options/options.h"

namespace fp8kv {

// Every member of the options that is a model, or a source that can be one. Throws as find_model
// does.
void find_models(Options& options);

}  // namespace fp8kv
