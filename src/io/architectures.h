// Which models this tool can compute with: a table, one row each.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "core/config.h"
#include "io/checkpoint.h"

namespace fp8kv {

// Names of a model's tensors; `{}` stands for the layer.
struct TensorNames {
  std::string embed;
  std::string attn_norm, q, k, v, o;  // without ".weight" / ".bias"
  std::string ffn_norm, gate, up, down;
  std::string norm;
  std::string lm_head;

  static std::string in_layer(const std::string& pattern, int64_t layer);
};

struct Architecture {
  std::string name;                                     // as in config.json "architectures"
  std::string summary;                                  // for help and README: "Llama 1, 2, 3.x"
  void (*parse)(const Json& config, ModelConfig& out);  // what differs from the common part
};

std::span<const Architecture> architectures();

const TensorNames& tensor_names();

// Numbers and switches of a config.json, old and new spelling. Throws, naming the key, for an
// unknown architecture (listing the known ones), an unknown rope scaling or activation, impossible
// dimensions, and a quantization_config that cannot be computed with.
ModelConfig parse_model_config(const Json& config);

// parse_model_config, the dtype and tied embeddings as the tensors have them, and every tensor's
// presence and shape checked.
ModelConfig read_model_config(const Checkpoint& checkpoint);

}  // namespace fp8kv
