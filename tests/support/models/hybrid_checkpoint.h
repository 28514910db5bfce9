// Tiny models where only some layers write a KV cache, one for each way to describe that. They have
// a config, and weights with the right names but meaningless values.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "core/scales/scales.h"
#include "formats/safetensors.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

struct Hybrid {
  std::string config;
  size_t n_layers;
  std::set<size_t> cached;     // the layers that write a cache
  std::string stack;           // "backbone."
  std::string attention;       // the name of a layer's attention: "mixer"
  std::string other;           // the name of a layer's mixer without a cache
  std::set<std::string> more;  // names of other weights that look similar
};

// Members that all configs share: 2 KV heads of 2.
inline std::string hybrid_config(const std::string& architecture, const std::string& type,
                                 const std::string& more) {
  return cat(R"({"architectures": [")", architecture, R"("], "model_type": ")", type,
             R"(", "torch_dtype": "bfloat16", "hidden_size": 4, "head_dim": 2, )",
             R"("num_attention_heads": 2, "num_key_value_heads": 2, )", more, "}");
}

inline Hybrid nemotron_h() {
  return {hybrid_config("NemotronHForCausalLM", "nemotron_h",
                        R"("num_hidden_layers": 5, "hybrid_override_pattern": "M*-*E")"),
          5,
          {1, 3},
          "backbone.",
          "mixer",
          "mixer",
          {}};
}

// Nemotron-H in the form of transformers 5: no number of layers, and a number that is not JSON.
inline Hybrid nemotron_h_listed() {
  Hybrid model = nemotron_h();
  model.config = hybrid_config(
      "NemotronHForCausalLM", "nemotron_h",
      R"("layers_block_type": ["linear_attention", "full_attention", "mlp", "full_attention",
         "moe"], "time_step_limit": [0.0, Infinity])");
  return model;
}

inline Hybrid qwen3_next() {
  return {hybrid_config("Qwen3NextForCausalLM", "qwen3_next",
                        R"("num_hidden_layers": 4, "full_attention_interval": 2)"),
          4,
          {1, 3},
          "model.",
          "self_attn",
          "linear_attn",
          {"mtp.layers.0.self_attn.k_proj.weight", "mtp.layers.0.self_attn.v_proj.weight"}};
}

inline Hybrid qwen3_5() {
  const std::string text =
      R"({"num_hidden_layers": 3, "hidden_size": 4, "head_dim": 2, "num_attention_heads": 2,
          "num_key_value_heads": 2, "model_type": "qwen3_5_text",
          "layer_types": ["linear_attention", "linear_attention", "full_attention"]})";
  return {cat(R"({"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
                  "torch_dtype": "bfloat16", "text_config": )",
              text, "}"),
          3,
          {2},
          "model.language_model.",
          "self_attn",
          "linear_attn",
          {"model.vision_tower.layers.0.self_attn.k_proj.weight",
           "model.vision_tower.layers.0.self_attn.v_proj.weight"}};
}

inline Hybrid granite_4() {
  return {
      hybrid_config("GraniteMoeHybridForCausalLM", "granitemoehybrid",
                    R"("num_hidden_layers": 3, "layer_types": ["mamba", "attention", "mamba"])"),
      3,
      {1},
      "model.",
      "self_attn",
      "mamba",
      {}};
}

inline std::vector<Hybrid> hybrids() {
  return {nemotron_h(), nemotron_h_listed(), qwen3_next(), qwen3_5(), granite_4()};
}

// Scales for every layer with a cache, different for K and V.
inline KvScales hybrid_scales(const Hybrid& model) {
  KvScales scales;
  scales.layers.resize(model.n_layers);
  for (const size_t layer : model.cached) {
    const auto number = static_cast<float>(layer);
    scales.layers[layer] = {{0.25f + number}, {0.0625f * number}};
  }
  return scales;
}

inline void write_hybrid(const TempDir& place, const std::string& name, const Hybrid& model) {
  place.write(name + "/config.json", model.config);
  std::set<std::string> weights = model.more;
  for (size_t layer = 0; layer < model.n_layers; ++layer) {
    const std::string at = cat(model.stack, "layers.", layer, ".");
    if (model.cached.contains(layer)) {
      for (const char* projection : {"q", "k", "v", "o"}) {
        weights.insert(cat(at, model.attention, ".", projection, "_proj.weight"));
      }
    } else {
      weights.insert(cat(at, model.other, ".in_proj.weight"));
    }
  }
  const std::vector<std::byte> zeros(32);
  std::vector<TensorToWrite> tensors;
  for (const std::string& weight : weights) {
    tensors.push_back({weight, ConstTensorView(zeros.data(), DType::bf16, Shape{4, 4})});
  }
  place.write(name + "/model.safetensors", safetensors_bytes(tensors, {{"format", "pt"}}));
}

}  // namespace fp8kv::test
