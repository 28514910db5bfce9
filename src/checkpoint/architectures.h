// Which models this tool can compute with: a table, one row each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/config.h"
#include "core/tensor_row.h"
#include "json/json.h"

namespace fp8kv {

struct NamedActivation {
  std::string_view name;  // as in config.json "hidden_act"
  Activation activation;
};

struct Architecture {
  std::string name;     // as in config.json "architectures"
  std::string summary;  // for help and README: "Llama 1, 2, 3.x"
  // What differs from the common part. The description in `out` is complete, and is checked.
  void (*parse)(const Json& config, ModelConfig& out);
  std::span<const TensorRow> tensors;
  // That it may have; the first where config.json names none.
  std::span<const NamedActivation> activations;
};

std::span<const Architecture> architectures();

// The row that config.json names. Throws, listing the rows, where it names none of them.
const Architecture& architecture_at(const Json& config);

}  // namespace fp8kv
