// The part of `verify` that runs an installed runtime.
#pragma once

#include "options/options.h"

namespace fp8kv {

// Carries out `verify --with`. REQUIRES options.with.
void verify_with(const VerifyOptions& options);

}  // namespace fp8kv
