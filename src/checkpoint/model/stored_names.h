// How the files of a model name and store its tensors, where versions and tools differ.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"

namespace fp8kv {

// The name of Q's weight in the first layer with attention. REQUIRES such a layer.
std::string q_name(const ModelConfig& config);

// Whether the weight exists, under its own name or under a quantiser's name for it.
bool has_weight(const Checkpoint& checkpoint, const std::string& name);

// Sets the prefixes, the table and the names of tensors that the checkpoint has.
void find_stored_names(const Checkpoint& checkpoint, ModelConfig& config);

}  // namespace fp8kv
