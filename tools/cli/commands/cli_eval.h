// The flags of `eval`.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_eval(CLI::App& app, EvalCommandOptions& options);

}  // namespace fp8kv
