// Checks the tensors of quantised checkpoints of any architecture: a config must mention them, and
// runtimes must be able to divide by their input scales. Decodes no weights.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace fp8kv {

// Throws if weights are stored as codes, but config.json and hf_quant_config.json do not say that
// weights are quantised. Runtimes would take codes for weights, or decode them wrongly.
// `weight_scale` tensors beside the codes do not help, since they do not tell the form of the
// inputs. Also throws for an input scale that is not a positive finite number. Names the tensor.
void check_quantised_tensors(const Checkpoint& checkpoint);

// The names of the tensors whose values check_quantised_tensors reads.
std::vector<std::string> input_scale_tensors(const Checkpoint& checkpoint);

}  // namespace fp8kv
