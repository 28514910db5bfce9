// One row of the table of architectures: how a family's config.json differs from the common form.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/families/rope_config.h"
#include "core/model/config.h"
#include "core/model/tensor_row.h"
#include "json/json.h"

namespace fp8kv {

struct NamedActivation {
  std::string_view name;  // as in config.json "hidden_act"
  Activation activation;
};

// The activation of most families.
inline constexpr NamedActivation kSilu[] = {{"silu", Activation::silu},
                                            {"swish", Activation::silu}};

struct Architecture {
  std::string name;           // as in config.json "architectures"
  std::string model_type;     // as in config.json "model_type", by which transformers chooses
  std::string summary;        // for messages: "Llama 1, 2, 3.x"
  bool windows = false;       // layers may have sliding windows
  bool chunks = false;        // layers may attend within chunks
  bool states = false;        // layers may keep a state instead of a cache
  bool blocks = false;        // layers may be a feed-forward part alone
  bool shapes = false;        // layers may differ in their heads, and read each other's caches
  bool own_kv_heads = false;  // layers may differ in their number of KV heads
  bool narrow_v = false;      // V may be narrower than K
  // Reads the keys specific to the family. The description in `out` is complete by then, and its
  // layers are checked.
  void (*parse)(const Json& config, ModelConfig& out);
  std::span<const TensorRow> tensors;
  // The tensors of files that store experts the other way: all of a layer in one tensor, or each
  // apart.
  std::span<const TensorRow> other_tensors = {};
  // The table for files that store each expert's matrices transposed, told by their shapes.
  std::span<const TensorRow> turned_tensors = {};
  std::span<const NamedActivation> activations;  // the supported ones; the first is the default
  // The family's names for two keys, then its defaults for missing keys.
  const char* norm_eps = "rms_norm_eps";
  const char* activation = "hidden_act";
  bool tied = false;
  int64_t context = 0;      // default context; 0: the config must give it
  int64_t hidden_dims = 0;  // default hidden_dim in units of dim; 0: the config must give it
  RopeStyle rope = {};
  // The prefix that replaces "model.", and the name of lm_head, in files of the model alone.
  const char* model_prefix = "model.";
  const char* lm_head = "lm_head";
  // Other values of model_type in published files.
  std::span<const std::string_view> more_types = {};
  // Other values of model_type for this language model inside a larger model.
  std::span<const std::string_view> inner_types = {};
};

}  // namespace fp8kv
