// The flags of `fp8kv run`.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_run(CLI::App& app, RunOptions& options);

}  // namespace fp8kv
