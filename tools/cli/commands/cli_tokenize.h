// The flags of `tokenize`.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_tokenize(CLI::App& app, TokenizeOptions& options);

}  // namespace fp8kv
