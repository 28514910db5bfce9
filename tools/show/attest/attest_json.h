// An attestation as JSON. docs/json.md describes its keys.
#pragma once

#include <string>

#include "show/attest/attest_text.h"

namespace fp8kv {

std::string attest_json(const AttestReport& report, const AttestedServer& server);

}  // namespace fp8kv
