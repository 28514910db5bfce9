// config.json files of tiny models with one changed member.
#pragma once

#include <string>

#include "checkpoint/model/read_model_config.h"
#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

inline ModelConfig parse_config(const std::string& text) {
  return parse_model_config(Json::parse(text, "config.json", JsonNumbers::python));
}

inline std::string error_of_config(const std::string& text) {
  return error_of([&] { parse_config(text); });
}

inline TinyConfig tiny_config(const std::string& architecture) {
  TinyConfig config = tiny_config();
  config.architecture = architecture;
  if (architecture == "MistralForCausalLM") config.model_type = "mistral";
  if (architecture == "Qwen2ForCausalLM") {
    config.model_type = "qwen2";
    config.qkv_bias = true;
  }
  if (architecture == "Qwen3ForCausalLM") {
    config.model_type = "qwen3";
    config.block.qk_norm = QkNorm::per_head;
  }
  if (architecture == "MixtralForCausalLM") {
    config.model_type = "mixtral";
    config.experts = {.count = 5,
                      .hidden_dim = config.hidden_dim,
                      .routing = {.per_token = 2, .normalise = true}};
  }
  if (architecture == "Qwen2MoeForCausalLM") {
    config.model_type = "qwen2_moe";
    config.qkv_bias = true;
    config.experts = {.count = 6,
                      .hidden_dim = 20,
                      .routing = {.per_token = 3},
                      .shared_hidden_dim = 28,
                      .shared_gated = true};
  }
  if (architecture == "Qwen3MoeForCausalLM") {
    config.model_type = "qwen3_moe";
    config.block.qk_norm = QkNorm::per_head;
    config.experts = {.count = 6, .hidden_dim = 20, .routing = {.per_token = 2, .normalise = true}};
    config.dense_layers = {1};
  }
  if (architecture == "OlmoeForCausalLM") {
    config.model_type = "olmoe";
    config.block.qk_norm = QkNorm::whole;
    config.experts = {.count = 6, .hidden_dim = config.hidden_dim, .routing = {.per_token = 2}};
  }
  if (architecture == "GraniteMoeForCausalLM") {
    config.model_type = "granitemoe";
    config.experts = {.count = 6,
                      .hidden_dim = config.hidden_dim,
                      .routing = {.per_token = 2, .score = RouterScore::softmax_of_chosen}};
  }
  if (architecture == "Olmo2ForCausalLM") {
    config.model_type = "olmo2";
    config.block.norm_place = NormPlace::after;
    config.block.qk_norm = QkNorm::whole;
  }
  return config;
}

// The tiny config.json of an architecture with one member set to a JSON value; null removes it.
inline std::string config_with(const std::string& architecture, const std::string& key,
                               const std::string& value) {
  return json_with_member(tiny_config_json(tiny_config(architecture)), key, value);
}

inline std::string llama_with(const std::string& key, const std::string& value) {
  return config_with("LlamaForCausalLM", key, value);
}

// Writes a checkpoint and reads its config back.
inline ModelConfig through_folder(const TinyConfig& config, const TinyOptions& options = {}) {
  const TempDir temp;
  write_tiny_checkpoint(temp / "model", config, options);
  return read_model_config(Checkpoint::open(temp / "model"));
}

}  // namespace fp8kv::test
