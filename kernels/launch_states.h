// Launches of convolutions and recurrences. Callers have checked the arguments; pointers are the
// device's, and sizes are those of backend/backend.h.
#pragma once

#include "core/model/recurrence.h"
#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {

// The places of the states of a step's sequences: see Batch.
struct StateRows {
  const int32_t* positions = nullptr;  // [n]
  const int32_t* indptr = nullptr;     // [n_seqs + 1]
  const int32_t* slots = nullptr;      // [n_seqs]; null: no state is kept
  int32_t n_seqs = 0;
};

// See CausalConv.
struct ConvArguments {
  void* x = nullptr;             // [n, channels]
  const void* weight = nullptr;  // [channels, width], weight_dtype
  const void* bias = nullptr;    // [channels], x's type; may be null
  float* state = nullptr;        // [slots, (width - 1) * dilation, channels]
  // [n, channels], x's type; may be null.
  const void *in_gate = nullptr, *out_gate = nullptr;
  StateRows rows;
  int64_t channels = 0;
  int32_t width = 0;
  int32_t dilation = 1;
  DType weight_dtype = DType::f32;
  bool silu = true;
  bool adds_input = false;
};

void causal_conv(Stream stream, DType dtype, const ConvArguments& arguments);

// See TokenPools.
struct PoolArguments {
  const void* values = nullptr;  // [n, parts * dim]
  const void* gates = nullptr;   // [n, parts * dim], of the same type
  const void* bias = nullptr;    // [block, parts * dim], bias_dtype
  void* out = nullptr;           // [n, dim], of the values' type
  float* state = nullptr;        // [slots, block * parts, 2 * parts * dim]
  StateRows rows;
  int64_t dim = 0;
  int32_t block = 1;
  int32_t parts = 1;
  DType bias_dtype = DType::f32;
};

void pool_tokens(Stream stream, DType dtype, const PoolArguments& arguments);

// See Recurrence. REQUIRES k_dim <= kMostStateRows. Comments give the shapes without by_element.
struct RecurrenceArguments {
  const void* q = nullptr;          // [n, k_heads, k_dim]
  const void* k = nullptr;          // [n, k_heads, k_dim], q's type
  const void* v = nullptr;          // [n, v_heads, v_dim], q's type
  const float* step = nullptr;      // [n, v_heads], or [n, v_heads, k_dim] if by_row
  const float* strength = nullptr;  // [n, v_heads]; may be null
  const void* a_log = nullptr;      // [v_heads], a_log_dtype
  const void* step_bias = nullptr;  // as many as steps of a row, step_bias_dtype
  const void* skip = nullptr;       // [v_heads], skip_dtype; may be null
  float* state = nullptr;           // [slots, v_heads, blocks, k_dim, kStateColumns]
  void* out = nullptr;              // [n, v_heads, v_dim], q's type
  StateRows rows;
  DType a_log_dtype = DType::f32;
  DType step_bias_dtype = DType::f32;
  DType skip_dtype = DType::f32;
  float least_step = 0.0f;
  float most_step = 0.0f;
  float most_strength = 1.0f;
  float least_log_decay = 0.0f;  // 0: none
  bool by_row = false;           // each row of a state decays by its own step
  bool by_element = false;       // see Recurrence
  StateUpdate update = StateUpdate::delta;
  bool unit = false;
  int32_t k_heads = 0;
  int32_t k_dim = 0;
  int32_t v_heads = 0;
  int32_t v_dim = 0;
};

void recur(Stream stream, DType dtype, const RecurrenceArguments& arguments);

}  // namespace fp8kv::FP8KV_GPU
