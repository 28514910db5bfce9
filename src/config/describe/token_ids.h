// Token ids in a config.json or generation_config.json.
#pragma once

#include <cstdint>
#include <vector>

#include "json/json.h"

namespace fp8kv {

int32_t parse_token_id(const Json& id);
// Reads one token id or a list of them, as under eos_token_id.
std::vector<int32_t> parse_token_ids(const Json& ids);

}  // namespace fp8kv
