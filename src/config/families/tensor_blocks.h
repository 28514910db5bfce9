// What tables of tensors have in common: rows that most models since Llama have, block by block.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "core/tensor_row.h"

namespace fp8kv {

using TensorRows = std::vector<TensorRow>;

// All of them, one after another.
TensorRows joined(std::initializer_list<TensorRows> blocks);

// The same rows, but for those of experts, which are `experts`.
TensorRows with_experts(std::span<const TensorRow> rows, const TensorRows& experts);

TensorRows opening();  // the embedding, and the norm before attention
TensorRows qkv();      // as three matrices
TensorRows qk_norms();
TensorRows attention_out();
TensorRows next_norm();              // before the feed-forward part
TensorRows gated_mlp();              // as three matrices
TensorRows fused_mlp();              // gate and up in one
TensorRows experts_apart();          // each in tensors of its own
TensorRows experts_together();       // all in one, rows of gate before those of up
TensorRows granite_experts_apart();  // each in tensors of its own, as llm-compressor names them
TensorRows deepseek_experts();  // a router, with a bias of the choice, experts and a shared one
TensorRows ending();            // the last norm, and lm_head

}  // namespace fp8kv
