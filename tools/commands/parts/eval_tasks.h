// `eval --task`: asks every cache the same items.
#pragma once

#include "options/options.h"

namespace fp8kv {

void run_eval_tasks(const EvalCommandOptions& options);

}  // namespace fp8kv
