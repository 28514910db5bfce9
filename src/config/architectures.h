// Which models this tool can compute with: a table, one row each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/rope_config.h"
#include "core/config.h"
#include "core/tensor_row.h"
#include "json/json.h"

namespace fp8kv {

struct NamedActivation {
  std::string_view name;  // as in config.json "hidden_act"
  Activation activation;
};

struct Architecture {
  std::string name;        // as in config.json "architectures"
  std::string model_type;  // as in config.json "model_type", by which transformers goes
  std::string summary;     // for people: "Llama 1, 2, 3.x"
  bool windows = false;    // its layers may have sliding windows
  // What differs from the common part. The description in `out` is complete, and its layers are
  // checked.
  void (*parse)(const Json& config, ModelConfig& out);
  std::span<const TensorRow> tensors;
  std::span<const NamedActivation> activations;  // it may have; the first is the default
  // What its config.json calls these, and has where it does not say.
  const char* norm_eps = "rms_norm_eps";
  const char* activation = "hidden_act";
  bool tied = false;
  RopeStyle rope = {};
  // What else its model_type is where it is the language model inside of another.
  std::span<const std::string_view> inner_types = {};
};

std::span<const Architecture> architectures();

// The row that config.json names, or that of its language model where it names a model with more
// parts. Throws, listing the rows, where it names none of them, and where its model_type is of
// another architecture.
const Architecture& architecture_at(const Json& config);

// Throws, naming the member of the config, unless all layers are alike: attention to every token
// before, or to a sliding window of them where the architecture may have windows, with the same
// heads and a cache of their own.
void check_layers(const Architecture& architecture, const Json& config, const ModelConfig& model);

}  // namespace fp8kv
