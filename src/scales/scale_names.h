// Tells by name alone whether a tensor is a KV scale. Covers every spelling that any tool writes,
// usable or not: --replace takes these tensors out, and runtimes may stop at them. dialects.h says
// how they are read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace fp8kv {

// Metadata keys of a scale shard. The first holds "post_rope" or "pre_rope", if known.
inline constexpr const char* kObservationKey = "kv_scale_observation";
inline constexpr const char* kAcceptedForeignKey = "kv_scale_accepted_foreign";
// The metadata key of the scale file that the shard was made from, as text.
inline constexpr const char* kEvidenceKey = "fp8kv.scales";

enum class ScaleSpelling {
  fused,       // self_attn.kv_scale
  apart,       // self_attn.k_scale, self_attn.v_scale
  parameter,   // self_attn.attn.k_scale, self_attn.attn.v_scale
  projection,  // self_attn.k_proj.k_scale, self_attn.v_proj.v_scale
  output,      // self_attn.k_proj.output_scale, self_attn.v_proj.output_scale
  query,       // self_attn.q_scale, self_attn.attn.q_scale, self_attn.q_proj.q_scale
  other,       // self_attn.k_cache.scale, zero points
};

// Returns nullopt unless the tensor is a scale or zero point of K, V, both or Q.
std::optional<ScaleSpelling> scale_spelling(std::string_view tensor);
// Like scale_spelling, but returns nullopt for scales of Q.
std::optional<ScaleSpelling> kv_scale_spelling(std::string_view tensor);

// The names of all scale tensors in a checkpoint, sorted.
std::vector<std::string> kv_scale_names(const Checkpoint& checkpoint);

// Removes the scales of draft layers, which say nothing about the model's own layers.
void drop_draft_scales(TensorMap& tensors, const Json& config);

}  // namespace fp8kv
