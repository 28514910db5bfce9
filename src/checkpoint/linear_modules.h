// Finds the linear layers of a model by its tensors' names, and handles the `ignore` lists of
// compressed-tensors that name them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace fp8kv {

// All modules with a weight of two or more dimensions, except embeddings, in order:
// "model.layers.0.self_attn.q_proj". This includes convolutions, which are harmless to ignore.
std::vector<std::string> linear_modules(const TensorMap& tensors);

// Whether layers are mixtures of experts, with separate or stacked tensors.
bool has_experts(const TensorMap& tensors);

// An `ignore` list that matches each of `modules` by its last name, but no attention module. It
// works under any prefix of a runtime, and for modules that the runtime fuses. {"lm_head",
// "re:.*_proj$"} for most models, plus "re:.*experts$" if there are experts.
std::vector<std::string> ignore_patterns(std::span<const std::string> modules, bool experts);

// Whether an `ignore` list covers one linear module. "Linear" is their class and covers all of
// them. Callers must leave out modules that are not linear first.
enum class Ignored { no, yes, unclear };

Ignored ignored(std::span<const std::string> ignore, std::string_view module);

}  // namespace fp8kv
