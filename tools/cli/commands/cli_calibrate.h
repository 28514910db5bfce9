// The flags of calibrate.
#pragma once

#include "options/options.h"

namespace CLI {
class App;
}

namespace fp8kv {

CLI::App* add_calibrate(CLI::App& app, CalibrateOptions& options);

}  // namespace fp8kv
