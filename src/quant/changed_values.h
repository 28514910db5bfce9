// Finds changes to values that a quantised checkpoint makes besides multiplying by its weights.
// fp8kv computes none of them. Without these checks the weights would be read as another model's.
#pragma once

#include <optional>
#include <string>

#include "json/json.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// The change that a tensor makes, "multiplies what ..."; "" if it makes none.
std::string change_by(const std::string& tensor, const FindTensor& find);

// The first transform at run time, as in SpinQuant and QuIP: "'m/config.json':
// quantization_config.transform_config.config_groups.R4.apply[0]: changes ...". "" if there is
// none. Transforms that are already in the weights do not count. `block`: the quantization_config.
std::string change_at_run_time(const std::optional<Json>& block);

}  // namespace fp8kv
