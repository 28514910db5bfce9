// What a quantised checkpoint has done to values beside multiplying them by its weights. None of it
// is computed here, so that without these checks its weights would be read as another model's.
#pragma once

#include <optional>
#include <string>

#include "json/json.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// Of a tensor that changes values: what it does, "multiplies what ..."; "" of every other.
std::string change_by(const std::string& tensor, const FindTensor& find);

// Of transforms while the model runs, as SpinQuant and QuIP have them: "'m/config.json':
// quantization_config.transform_config.config_groups.R4.apply[0]: changes ..."; "" where there is
// none. Those that are in the weights already change nothing. `block`: at quantization_config.
std::string change_at_run_time(const std::optional<Json>& block);

}  // namespace fp8kv
