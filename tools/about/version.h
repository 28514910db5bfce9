// What `fp8kv --version` prints: the version, how it was built, for which instruction sets and with
// which libraries. What the machine has is in `fp8kv doctor`.
#pragma once

#include <string>

namespace fp8kv {

// The version alone on the first line.
std::string version_text();

std::string version_json();

}  // namespace fp8kv
