// The flags of `fp8kv inject`.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_inject(CLI::App& app, InjectCommandOptions& options);

}  // namespace fp8kv
