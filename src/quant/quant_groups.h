// The `config_groups` of a quantization_config, checked against the tensors they describe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// One group that describes weights.
struct QuantGroup {
  std::string where;  // "'m/config.json': quantization_config.config_groups.group_0"
  std::vector<std::string> targets;
  int64_t bits = 0;  // 0: not given
  std::string type;  // "int" or "float"; "": not given
};

// Leaves out groups without `weights`. `block`: the quantization_config.
std::vector<QuantGroup> read_quant_groups(const std::optional<Json>& block);

// Whether a group applies to a module. Returns nullopt if its targets are unsupported patterns, or
// classes that may include the module.
std::optional<bool> is_for(const QuantGroup& group, const std::string& module);

// Throws unless the first group for the module agrees with the tensors in bits and in whether codes
// are integers. Throws if there are groups but none applies. `source`: "'model'".
void check_group_of(const std::vector<QuantGroup>& groups, const std::string& module,
                    const StoredWeight& weight, const std::string& source);

// Throws if a group applies to none of `modules`.
void check_groups_used(const std::vector<QuantGroup>& groups,
                       const std::vector<std::string>& modules);

}  // namespace fp8kv
