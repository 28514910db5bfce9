// Families in which most layers keep a state of fixed size and a few have attention: their special
// config keys and their tensors.
#pragma once

#include <span>

#include "config/families/architecture.h"
#include "config/families/tensor_blocks.h"

namespace fp8kv {

std::span<const Architecture> state_architectures();

// Reads the sizes of a gated DeltaNet into out.recurrence.
void parse_delta_sizes(const Json& config, ModelConfig& out);

// Reads Qwen 3.5 with experts. In other models that are made of its layers, norm_topk_prob may be
// off.
void parse_qwen3_5_moe(const Json& config, ModelConfig& out);

// The tensors of such a model. The first has Q in one tensor with attention's gate; the next two
// are of layers that keep a state.
TensorRows gated_qkv();
TensorRows state_projections();
TensorRows state_rest();
TensorRows gated_shared_expert();

}  // namespace fp8kv
