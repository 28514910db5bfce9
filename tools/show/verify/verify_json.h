// The result of `verify` as JSON. See docs/commands.md.
#pragma once

#include <string>

#include "options/options.h"
#include "scales/verify/verify_scales.h"

namespace fp8kv {

std::string verify_json(const VerifyOptions& options, const VerifyReport& report);

}  // namespace fp8kv
