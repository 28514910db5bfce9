// Tells by its name alone whether a tensor is a KV scale, in every spelling that some tool writes
// and whether its values can be used or not: these are the tensors that --replace takes out and
// that a runtime may stop at. How they are read is in dialects.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace fp8kv {

// In the metadata of a shard of scales, where it is known: "post_rope" or "pre_rope".
inline constexpr const char* kObservationKey = "kv_scale_observation";
inline constexpr const char* kAcceptedForeignKey = "kv_scale_accepted_foreign";
// The scale file that the shard was made of, as text.
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

// nullopt for anything but a scale (or zero point) of K, V, both or Q.
std::optional<ScaleSpelling> scale_spelling(std::string_view tensor);
// nullopt for a scale of Q too.
std::optional<ScaleSpelling> kv_scale_spelling(std::string_view tensor);

// The tensors of a checkpoint that have a spelling, in order.
std::vector<std::string> kv_scale_names(const Checkpoint& checkpoint);

// Takes out the scales of draft layers, which say nothing of the model's own.
void drop_draft_scales(TensorMap& tensors, const Json& config);

}  // namespace fp8kv
