// The flags of `eval` that ask every cache a task instead of measuring on a text.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

// Adds the flags to `command`. REQUIRES that it has its other flags already.
void add_eval_tasks(CLI::App& command, TaskOptions& options);

}  // namespace fp8kv
