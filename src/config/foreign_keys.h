// Keys of config.json that matter to some models, as a table. The check of a config is in
// known_keys.h.
#pragma once

#include <string_view>
#include <vector>

namespace fp8kv {

// A key that changes what some models compute, and its harmless values (as JSON; null and [] are
// always harmless). If the architecture does not read the key, any other value is refused.
struct ForeignKey {
  std::string_view key;
  std::vector<std::string_view> harmless;
};
const std::vector<ForeignKey>& foreign_keys();

}  // namespace fp8kv
