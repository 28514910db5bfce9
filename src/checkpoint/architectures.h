// Which models this tool can compute with: a table, one row each.
#pragma once

#include <span>
#include <string>

#include "checkpoint/checkpoint.h"
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
  std::string name;                                     // as in config.json "architectures"
  std::string summary;                                  // for help and README: "Llama 1, 2, 3.x"
  void (*parse)(const Json& config, ModelConfig& out);  // what differs from the common part
};

std::span<const Architecture> architectures();

const TensorNames& tensor_names();

// What any transformer's config.json says of its KV cache, whether we can compute with the model or
// not: architecture, model_type, n_layers, n_heads, n_kv_heads, head_dim, and dim and max_seq_len
// (0 where it does not say). The rest of the result is not set. Models that wrap a language model
// are read at their `text_config`. Throws, naming the key, when one of the four numbers cannot be
// told or is impossible.
ModelConfig parse_model_shape(const Json& config);

// Numbers and switches of a config.json, old and new spelling. Throws, naming the key, for an
// unknown architecture (listing the known ones), an unknown rope scaling or activation, impossible
// dimensions, and a quantization_config that cannot be computed with.
// dtype is f32 where the config does not say, as in transformers.
ModelConfig parse_model_config(const Json& config);

// parse_model_config, with what only the folder can tell: the dtype, which all weights must share,
// and the end tokens of generation_config.json, which overrule those of config.json. Throws unless
// every tensor is there with its shape (of tied embeddings one name is enough; where both are
// stored the embedding counts), and when there are weights or layers that the model has no use for.
ModelConfig read_model_config(const Checkpoint& checkpoint);

}  // namespace fp8kv
