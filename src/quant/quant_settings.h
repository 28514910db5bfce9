// What a quantization_config says of the weights that their tensors do not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"

namespace fp8kv {

struct QuantSettings {
  std::string quant_method;  // as the config spells it; "" where it does not
  // Of scales for blocks; 0: not said.
  int64_t block_rows = 0;
  int64_t block_columns = 0;
  int64_t group_columns = 0;  // that share a scale; 0: not said, or not the same everywhere
  // GPTQ's zero points are stored as they are meant: its second form. In the first they are stored
  // less one.
  bool plain_zeros = false;
  // Modules that are left as they were, as names, parts of names, or with "*"; and where that list
  // stands, for messages.
  std::vector<std::string> left_out;
  std::string left_out_at;
  // All linear layers of attention and feed-forward blocks are quantised but those.
  bool all_others = false;
};

// `block`: at quantization_config; `hf_quant`: hf_quant_config.json. Throws for a block size or a
// list of another type.
QuantSettings read_quant_settings(const std::optional<Json>& block,
                                  const std::optional<Json>& hf_quant);

enum class LeftOut { no, yes, unclear };

// Whether the list says that a module is left as it was.
LeftOut left_out(const QuantSettings& settings, const std::string& module);

}  // namespace fp8kv
