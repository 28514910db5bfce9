// The flags of `eval` that ask tasks of every cache, in place of a text.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

// To be called after the other flags of `command` are there.
void add_eval_tasks(CLI::App& command, TaskOptions& options);

}  // namespace fp8kv
