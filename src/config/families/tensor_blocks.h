// Building blocks for tables of tensors: rows that most models since Llama share.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "core/model/tensor_row.h"

namespace fp8kv {

using TensorRows = std::vector<TensorRow>;

// All blocks in one list.
TensorRows joined(std::initializer_list<TensorRows> blocks);

// `rows`, with the rows of experts replaced by `experts`.
TensorRows with_experts(std::span<const TensorRow> rows, const TensorRows& experts);

TensorRows opening();  // embedding, and the norm before attention
TensorRows qkv();      // three matrices
TensorRows qk_norms();
TensorRows attention_out();
TensorRows next_norm();              // norm before the feed-forward part
TensorRows gated_mlp();              // three matrices
TensorRows fused_mlp();              // gate and up in one matrix
TensorRows ungated_mlp();            // up and down
TensorRows experts_apart();          // each expert has its own tensors
TensorRows experts_together();       // all experts in one tensor, rows of gate before rows of up
TensorRows granite_experts_apart();  // each expert has its own tensors, with llm-compressor's names
TensorRows mixtral_experts();        // a router, and experts apart: w1 is the gate, w3 up, w2 down
TensorRows deepseek_experts();       // a router with a choice bias, experts and a shared expert
TensorRows ending();                 // last norm and lm_head

}  // namespace fp8kv
