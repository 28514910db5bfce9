// Persimmon: blocks of GPT-NeoX one after the other, with a squared ReLU and norms of Q and K.
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr NamedActivation kRelu2[] = {{"relu2", Activation::relu_squared}};

const TensorRow kPersimmonTensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.query_key_value", {q, k, v}, TensorLayout::by_kv_head},
    {"model.layers.{}.self_attn.q_layernorm", {q_norm}},
    {"model.layers.{}.self_attn.k_layernorm", {k_norm}},
    {"model.layers.{}.self_attn.dense", {o}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.dense_h_to_4h", {up}},
    {"model.layers.{}.mlp.dense_4h_to_h", {down}},
    {"model.final_layernorm", {norm}},
    {"lm_head", {lm_head}},
};

void parse_persimmon(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = out.mlp_bias = true;
  BlockConfig& block = out.block;
  block.norm = NormKind::layer;
  block.norm_bias = true;
  block.gated = false;
  if (!is_on(config, "qk_layernorm")) return;
  block.qk_norm = QkNorm::per_head;
  block.qk_norm_bias = true;
}

}  // namespace

Architecture persimmon() {
  return {.name = "PersimmonForCausalLM",
          .model_type = "persimmon",
          .summary = "Persimmon",
          .parse = parse_persimmon,
          .tensors = kPersimmonTensors,
          .activations = kRelu2,
          .norm_eps = "layer_norm_eps",
          .rope = {.part = 0.5, .reads_part = true}};
}

}  // namespace fp8kv
