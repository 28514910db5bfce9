// The flags of `fp8kv quantize`.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_quantize(CLI::App& app, QuantizeOptions& options);

}  // namespace fp8kv
