// Parts of a config.json that have many spellings of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config.h"
#include "json/json.h"

namespace fp8kv {

// `rope_theta` with `rope_scaling` (up to transformers 4), or `rope_parameters` (from 5 on).
// Throws for a scaling other than default, linear, llama3 and yarn, and for partial rotation.
RopeConfig parse_rope(const Json& config);

int32_t parse_token_id(const Json& id);
// One token id or a list of them, as under eos_token_id.
std::vector<int32_t> parse_token_ids(const Json& ids);

}  // namespace fp8kv
