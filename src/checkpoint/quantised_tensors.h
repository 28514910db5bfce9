// Checks the tensors of a quantised checkpoint of any architecture: a config must speak of them,
// and a runtime must be able to divide by their input scales. Decodes no weights.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace fp8kv {

// Throws where weights are stored as codes and neither config.json nor hf_quant_config.json says
// that weights are quantised: runtimes would take codes for weights, or decode them in another way.
// `weight_scale` tensors beside them do not tell in which form the inputs are, so they change
// nothing. Throws, too, for an input scale that is no positive finite number. Names the tensor.
void check_quantised_tensors(const Checkpoint& checkpoint);

// The tensors whose values that reads, by name.
std::vector<std::string> input_scale_tensors(const Checkpoint& checkpoint);

}  // namespace fp8kv
