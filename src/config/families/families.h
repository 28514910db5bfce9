// Reads the keys of a config.json that are specific to a family: see Architecture::parse.
#pragma once

#include <cstddef>
#include <vector>

#include "core/model/config.h"
#include "json/json.h"

namespace fp8kv {

// Whether each layer rotates, by no_rope_layers or no_rope_layer_interval.
std::vector<bool> rotating_layers(const Json& config, size_t n_layers);

void parse_llama(const Json& config, ModelConfig& out);
void parse_mistral(const Json& config, ModelConfig& out);
void parse_ministral3(const Json& config, ModelConfig& out);
void parse_qwen2(const Json& config, ModelConfig& out);
void parse_qwen3(const Json& config, ModelConfig& out);
void parse_olmo2(const Json& config, ModelConfig& out);  // and OLMo 3
void parse_smollm3(const Json& config, ModelConfig& out);
void parse_granite(const Json& config, ModelConfig& out);
void parse_gemma(const Json& config, ModelConfig& out);
void parse_gemma2(const Json& config, ModelConfig& out);
void parse_gemma3(const Json& config, ModelConfig& out);
void parse_gemma3n(const Json& config, ModelConfig& out);
void parse_gemma4(const Json& config, ModelConfig& out);
void parse_gemma4_layers(const Json& config, ModelConfig& out);  // without per-layer inputs
void parse_phi(const Json& config, ModelConfig& out);
void parse_phi3(const Json& config, ModelConfig& out);
void parse_glm(const Json& config, ModelConfig& out);
void parse_glm4(const Json& config, ModelConfig& out);
void parse_cohere(const Json& config, ModelConfig& out);
void parse_cohere2(const Json& config, ModelConfig& out);
void parse_stablelm(const Json& config, ModelConfig& out);
void parse_starcoder2(const Json& config, ModelConfig& out);

}  // namespace fp8kv
