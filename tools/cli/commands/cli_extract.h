// The flags of extract.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_extract(CLI::App& app, ExtractOptions& options);

}  // namespace fp8kv
