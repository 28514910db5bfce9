// The part of `verify` that runs what somebody has installed.
#pragma once

#include "options/options.h"

namespace fp8kv {

// For `verify --with`: REQUIRES options.with.
void verify_with(const VerifyOptions& options);

}  // namespace fp8kv
