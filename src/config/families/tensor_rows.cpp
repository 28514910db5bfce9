#include "config/families/tensor_rows.h"

namespace fp8kv {
namespace {

using enum TensorRole;

const TensorRow kLlamaTensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.q_norm", {q_norm}},
    {"model.layers.{}.self_attn.k_norm", {k_norm}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.gate_proj", {gate}},
    {"model.layers.{}.mlp.up_proj", {up}},
    {"model.layers.{}.mlp.down_proj", {down}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

// OLMo 2 has no norms before its blocks.
const TensorRow kOlmo2Tensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.q_norm", {q_norm}},
    {"model.layers.{}.self_attn.k_norm", {k_norm}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {attn_post_norm}},
    {"model.layers.{}.mlp.gate_proj", {gate}},
    {"model.layers.{}.mlp.up_proj", {up}},
    {"model.layers.{}.mlp.down_proj", {down}},
    {"model.layers.{}.post_feedforward_layernorm", {ffn_post_norm}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

// Norms around both blocks.
const TensorRow kGemma2Tensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.q_norm", {q_norm}},
    {"model.layers.{}.self_attn.k_norm", {k_norm}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {attn_post_norm}},
    {"model.layers.{}.pre_feedforward_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.gate_proj", {gate}},
    {"model.layers.{}.mlp.up_proj", {up}},
    {"model.layers.{}.mlp.down_proj", {down}},
    {"model.layers.{}.post_feedforward_layernorm", {ffn_post_norm}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

const TensorRow kPhi3Tensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.qkv_proj", {q, k, v}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.gate_up_proj", {gate, up}},
    {"model.layers.{}.mlp.down_proj", {down}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

const TensorRow kGlmTensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.gate_up_proj", {gate, up}},
    {"model.layers.{}.mlp.down_proj", {down}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

// Norms around both blocks; post_attention_layernorm is before the second.
const TensorRow kGlm4Tensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_self_attn_layernorm", {attn_post_norm}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.gate_up_proj", {gate, up}},
    {"model.layers.{}.mlp.down_proj", {down}},
    {"model.layers.{}.post_mlp_layernorm", {ffn_post_norm}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

// One norm for both blocks.
const TensorRow kPhiTensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.q_layernorm", {q_norm}},
    {"model.layers.{}.self_attn.k_layernorm", {k_norm}},
    {"model.layers.{}.self_attn.dense", {o}},
    {"model.layers.{}.mlp.fc1", {up}},
    {"model.layers.{}.mlp.fc2", {down}},
    {"model.final_layernorm", {norm}},
    {"lm_head", {lm_head}},
};

// A norm for each head of Q and of K.
const TensorRow kStablelmHeadNormTensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.q_layernorm.norms.{h}", {q_norm}},
    {"model.layers.{}.self_attn.k_layernorm.norms.{h}", {k_norm}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.gate_proj", {gate}},
    {"model.layers.{}.mlp.up_proj", {up}},
    {"model.layers.{}.mlp.down_proj", {down}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

const TensorRow kStarcoder2Tensors[] = {
    {"model.embed_tokens", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.self_attn.q_proj", {q}},
    {"model.layers.{}.self_attn.k_proj", {k}},
    {"model.layers.{}.self_attn.v_proj", {v}},
    {"model.layers.{}.self_attn.o_proj", {o}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.c_fc", {up}},
    {"model.layers.{}.mlp.c_proj", {down}},
    {"model.norm", {norm}},
    {"lm_head", {lm_head}},
};

}  // namespace

std::span<const TensorRow> llama_tensors() {
  return kLlamaTensors;
}

std::span<const TensorRow> olmo2_tensors() {
  return kOlmo2Tensors;
}

std::span<const TensorRow> gemma2_tensors() {
  return kGemma2Tensors;
}

std::span<const TensorRow> phi3_tensors() {
  return kPhi3Tensors;
}

std::span<const TensorRow> glm_tensors() {
  return kGlmTensors;
}

std::span<const TensorRow> glm4_tensors() {
  return kGlm4Tensors;
}

std::span<const TensorRow> phi_tensors() {
  return kPhiTensors;
}

std::span<const TensorRow> stablelm_head_norm_tensors() {
  return kStablelmHeadNormTensors;
}

std::span<const TensorRow> starcoder2_tensors() {
  return kStarcoder2Tensors;
}

}  // namespace fp8kv
