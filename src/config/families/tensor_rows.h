// The names of tensors, family by family: tables of TensorRow.
#pragma once

#include <span>

#include "core/model/tensor_row.h"

namespace fp8kv {

// Llama's names, which most later models use too.
std::span<const TensorRow> llama_tensors();
std::span<const TensorRow> olmo2_tensors();
std::span<const TensorRow> gemma2_tensors();
std::span<const TensorRow> gemma3n_tensors();
std::span<const TensorRow> gemma4_tensors();
std::span<const TensorRow> gemma4_tensors_apart();
std::span<const TensorRow> phi3_tensors();
std::span<const TensorRow> glm_tensors();
std::span<const TensorRow> glm4_tensors();
std::span<const TensorRow> phi_tensors();
std::span<const TensorRow> starcoder2_tensors();
std::span<const TensorRow> stablelm_head_norm_tensors();

}  // namespace fp8kv
