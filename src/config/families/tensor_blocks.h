// What tables of tensors have in common: rows that most models since Llama have, block by block.
#pragma once

#include <initializer_list>
#include <vector>

#include "core/tensor_row.h"

namespace fp8kv {

using TensorRows = std::vector<TensorRow>;

// All of them, one after another.
TensorRows joined(std::initializer_list<TensorRows> blocks);

TensorRows opening();  // the embedding, and the norm before attention
TensorRows qkv();      // as three matrices
TensorRows qk_norms();
TensorRows attention_out();
TensorRows next_norm();  // before the feed-forward part
TensorRows gated_mlp();  // as three matrices
TensorRows fused_mlp();  // gate and up in one
TensorRows ending();     // the last norm, and lm_head

}  // namespace fp8kv
