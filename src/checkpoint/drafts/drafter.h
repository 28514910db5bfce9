// A drafter that has a checkpoint of its own (EAGLE-3): what its folder holds, and which models it
// can draft for.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"

namespace fp8kv {

// Whether the folder has a drafter: a product "fc" of hidden states, and a layer whose K projection
// takes twice the width of the product.
bool is_drafter(const TensorMap& tensors);

// The class by which runtimes know such drafters, whatever config.json says.
inline constexpr const char* kDrafterArchitecture = "LlamaForCausalLMEagle3";

// Like read_model_config, for a drafter. Throws if the folder has none, or one that is not
// supported. Its tensors are those that K and V depend on.
ModelConfig read_drafter_config(const Checkpoint& checkpoint);

// The target's layers whose inputs the drafter reads, ascending.
std::vector<int64_t> hidden_layers_of(const ModelConfig& drafter, const ModelConfig& target);

// Throws unless the drafter can draft for the target: widths, vocabulary and number of layers fit,
// and the target's hidden states are plain rows. Messages name the target by `where`.
void check_target(const ModelConfig& drafter, const ModelConfig& target, const std::string& where);

}  // namespace fp8kv
