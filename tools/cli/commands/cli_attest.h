// The flags of `attest`.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_attest(CLI::App& app, AttestCommandOptions& options);

}  // namespace fp8kv
