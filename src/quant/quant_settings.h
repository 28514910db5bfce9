// Facts about quantised weights that only the quantization_config has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"

namespace fp8kv {

struct QuantSettings {
  std::string quant_method;  // as the config spells it; "" if it has none
  // The block that shares a scale; 0: not given.
  int64_t block_rows = 0;
  int64_t block_columns = 0;
  int64_t group_columns = 0;  // columns that share a scale; 0: not given, or mixed
  // Whether zero points are stored as they are, as in GPTQ's second format. The first format stores
  // them minus 1.
  bool plain_zeros = false;
  // Modules that stay unquantised, as names, parts of names, or patterns with "*". left_out_at is
  // the place of that list, for messages.
  std::vector<std::string> left_out;
  std::string left_out_at;
  // Whether all other linear layers of attention and feed-forward blocks are quantised.
  bool all_others = false;
};

// `block`: the quantization_config; `hf_quant`: hf_quant_config.json. Throws if a block size or a
// list has the wrong type.
QuantSettings read_quant_settings(const std::optional<Json>& block,
                                  const std::optional<Json>& hf_quant);

enum class LeftOut { no, yes, unclear };

// Whether the list says that a module stays unquantised.
LeftOut left_out(const QuantSettings& settings, const std::string& module);

}  // namespace fp8kv
