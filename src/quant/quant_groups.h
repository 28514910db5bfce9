// The `config_groups` of a quantization_config, held to the tensors that they are about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// One group that says something of weights.
struct QuantGroup {
  std::string where;  // "'m/config.json': quantization_config.config_groups.group_0"
  std::vector<std::string> targets;
  int64_t bits = 0;  // 0: not said
  std::string type;  // "int" or "float"; "": not said
};

// Groups without `weights` are left out. `block`: at quantization_config.
std::vector<QuantGroup> read_quant_groups(const std::optional<Json>& block);

// Whether a group is for a module; nullopt where its targets are patterns that are not read here,
// or classes that may stand for it.
std::optional<bool> is_for(const QuantGroup& group, const std::string& module);

// Throws unless the first group for the module says what the tensors are: bits, and whether codes
// are integers. Throws where there are groups, and none is for it. `source`: "'model'".
void check_group_of(const std::vector<QuantGroup>& groups, const std::string& module,
                    const StoredWeight& weight, const std::string& source);

// Throws for a group that is for none of `modules`.
void check_groups_used(const std::vector<QuantGroup>& groups,
                       const std::vector<std::string>& modules);

}  // namespace fp8kv
