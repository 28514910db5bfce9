// The flags of verify.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_verify(CLI::App& app, VerifyOptions& options);

}  // namespace fp8kv
