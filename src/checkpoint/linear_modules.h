// The linear layers of a model by the names of its tensors, and the `ignore` lists of
// compressed-tensors that name them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace fp8kv {

// "model.layers.0.self_attn.q_proj" and so on, in order: every module with a weight of two or more
// dimensions but the embeddings. Convolutions are among them; to ignore one is harmless.
std::vector<std::string> linear_modules(const TensorMap& tensors);

// Whether layers are mixtures of experts, each with tensors of its own or all stacked.
bool has_experts(const TensorMap& tensors);

// An `ignore` list that matches every one of `modules` by its last name, under whatever prefix a
// runtime gives it and fused with whichever neighbours, and no attention module:
// {"lm_head", "re:.*_proj$"} for most models, with "re:.*experts$" where there are experts.
std::vector<std::string> ignore_patterns(std::span<const std::string> modules, bool experts);

// What an `ignore` list says of one linear module. "Linear" is their class and stands for all of
// them; of a module that is not linear it says nothing, and is to be left out before.
enum class Ignored { no, yes, unclear };

Ignored ignored(std::span<const std::string> ignore, std::string_view module);

}  // namespace fp8kv
