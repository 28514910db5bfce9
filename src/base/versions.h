#pragma once

#include <string>

namespace fp8kv {

// Compares versions as numbers: "0.27.1" is before "0.43". False if `version` is not a version.
// REQUIRES `bound` to be one.
bool version_before(const std::string& version, const std::string& bound);

}  // namespace fp8kv
