// A row of the table of architectures: what of a family's config.json is not common to all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/families/rope_config.h"
#include "core/config.h"
#include "core/tensor_row.h"
#include "json/json.h"

namespace fp8kv {

struct NamedActivation {
  std::string_view name;  // as in config.json "hidden_act"
  Activation activation;
};

// What most families have.
inline constexpr NamedActivation kSilu[] = {{"silu", Activation::silu},
                                            {"swish", Activation::silu}};

struct Architecture {
  std::string name;        // as in config.json "architectures"
  std::string model_type;  // as in config.json "model_type", by which transformers goes
  std::string summary;     // for people: "Llama 1, 2, 3.x"
  bool windows = false;    // its layers may have sliding windows
  bool chunks = false;     // its layers may see chunks
  bool states = false;     // its layers may keep a state instead of a cache
  bool blocks = false;     // its layers may be a feed-forward part alone
  bool shapes = false;     // its layers may differ in their heads, and read each other's caches
  // What differs from the common part. The description in `out` is complete, and its layers are
  // checked.
  void (*parse)(const Json& config, ModelConfig& out);
  std::span<const TensorRow> tensors;
  // What files have where experts lie otherwise: all of a layer in one tensor, or each in its own.
  std::span<const TensorRow> other_tensors = {};
  std::span<const NamedActivation> activations;  // it may have; the first is the default
  // What its config.json calls these, and has where it does not say.
  const char* norm_eps = "rms_norm_eps";
  const char* activation = "hidden_act";
  bool tied = false;
  int64_t context = 0;      // 0: it has to say
  int64_t hidden_dims = 0;  // the hidden_dim, in dims; 0: it has to say
  RopeStyle rope = {};
  // What its tensors' "model." and "lm_head" are by themselves.
  const char* model_prefix = "model.";
  const char* lm_head = "lm_head";
  // What else its model_type is in published files.
  std::span<const std::string_view> more_types = {};
  // What else its model_type is where it is the language model inside of another.
  std::span<const std::string_view> inner_types = {};
};

}  // namespace fp8kv
