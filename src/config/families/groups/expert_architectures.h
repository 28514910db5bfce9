// Families with mixture-of-experts layers: their special config keys and the names of their
// tensors. Rows of the table in architectures.cpp use them. Internal to config.
#pragma once

#include <span>

#include "core/model/config.h"
#include "core/model/tensor_row.h"
#include "json/json.h"

namespace fp8kv {

void parse_glm4_moe(const Json& config, ModelConfig& out);
// The experts of GLM-4.5: the router of DeepSeek V3, and an expert that takes every token.
void parse_glm4_experts(const Json& config, ModelConfig& out);
void parse_gpt_oss(const Json& config, ModelConfig& out);
void parse_granite_moe(const Json& config, ModelConfig& out);
void parse_minimax_m2(const Json& config, ModelConfig& out);
void parse_mixtral(const Json& config, ModelConfig& out);
void parse_olmoe(const Json& config, ModelConfig& out);
void parse_qwen2_moe(const Json& config, ModelConfig& out);
void parse_qwen3_moe(const Json& config, ModelConfig& out);

// In each pair the second is for files that store experts the other way, as llm-compressor writes
// them or as transformers 5 keeps them in memory.
std::span<const TensorRow> glm4_moe_tensors();
std::span<const TensorRow> glm4_moe_tensors_together();
std::span<const TensorRow> gpt_oss_tensors();
std::span<const TensorRow> gpt_oss_tensors_apart();
std::span<const TensorRow> qwen_moe_tensors();
std::span<const TensorRow> qwen_moe_tensors_together();
std::span<const TensorRow> granite_moe_tensors();
std::span<const TensorRow> granite_moe_tensors_apart();
std::span<const TensorRow> minimax_m2_tensors();
std::span<const TensorRow> mixtral_tensors();

}  // namespace fp8kv
