// The flags of `fp8kv equalize`.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_equalize(CLI::App& app, EqualizeOptions& options);

}  // namespace fp8kv
