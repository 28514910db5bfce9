// Which models this tool can compute with: a table, one row each.
#pragma once

#include <span>
#include <string>

#include "core/config.h"
#include "json/json.h"

namespace fp8kv {

// Names of a model's tensors without ".weight" and ".bias"; `{}` stands for the layer.
struct TensorNames {
  std::string embed;
  std::string attn_norm, q, k, v, q_norm, k_norm, o;
  std::string ffn_norm, gate, up, down;
  std::string norm;
  std::string lm_head;

  static std::string in_layer(const std::string& pattern, int64_t layer);
};

struct Architecture {
  std::string name;     // as in config.json "architectures"
  std::string summary;  // for help and README: "Llama 1, 2, 3.x"
  // What differs from the common part. The description in `out` is complete, and is checked.
  void (*parse)(const Json& config, ModelConfig& out);
};

std::span<const Architecture> architectures();

const TensorNames& tensor_names();

// The row that config.json names. Throws, listing the rows, where it names none of them.
const Architecture& architecture_at(const Json& config);

}  // namespace fp8kv
