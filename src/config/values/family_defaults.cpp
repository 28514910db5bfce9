#include "config/values/family_defaults.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "config/values/config_values.h"

namespace fp8kv {
namespace {

struct Family {
  std::string_view model_type;
  const char* defaults;
};

constexpr const char* kQwen2Vl = R"({"hidden_size": 8192, "intermediate_size": 29568,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
    "vocab_size": 152064, "max_position_embeddings": 32768, "rms_norm_eps": 1e-05,
    "hidden_act": "silu"})";

constexpr Family kFamilies[] = {
    {"gemma3_text", R"({"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
      "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-06,
      "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 4096,
      "query_pre_attn_scalar": 256})"},
    {"llama", R"({"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 32000, "max_position_embeddings": 2048,
      "rms_norm_eps": 1e-06, "hidden_act": "silu"})"},
    {"llama4_text", R"({"hidden_size": 5120, "intermediate_size": 8192,
      "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
      "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "hidden_act": "silu",
      "num_experts_per_tok": 1, "num_local_experts": 16, "attention_chunk_size": 8192})"},
    {"ministral3", R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 34,
      "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072,
      "max_position_embeddings": 262144, "rms_norm_eps": 1e-05, "hidden_act": "silu"})"},
    {"mistral", R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-06, "hidden_act": "silu",
      "sliding_window": 4096})"},
    {"qwen2_5_vl_text", kQwen2Vl},
    {"qwen2_vl_text", kQwen2Vl},
    {"qwen3_vl_text", R"({"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "vocab_size": 151936,
      "max_position_embeddings": 128000, "rms_norm_eps": 1e-06, "hidden_act": "silu"})"},
};

}  // namespace

Json with_family_defaults(const Json& text) {
  const std::string type = text.get_string("model_type", "");
  const auto* family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                    [&](const Family& row) { return row.model_type == type; });
  if (family == std::end(kFamilies)) return text;
  const Json defaults = Json::parse(family->defaults, cat("defaults of ", type));
  JsonWriter whole;
  whole.begin_object();
  for (size_t i = 0; i < text.size(); ++i) whole.member(text.key(i), text.value(i));
  bool lacks = false;
  for (size_t i = 0; i < defaults.size(); ++i) {
    if (mentions(text, defaults.key(i))) continue;
    lacks = true;
    whole.member(defaults.key(i), defaults.value(i));
  }
  whole.end_object();
  return lacks ? Json::parse(whole.text(), text.where(), JsonNumbers::python) : text;
}

}  // namespace fp8kv
