// The flags of `fp8kv fit`.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_fit(CLI::App& app, FitCommandOptions& options);

}  // namespace fp8kv
