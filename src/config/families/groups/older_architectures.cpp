#include "config/families/groups/older_architectures.h"

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

const TensorRow kGpt2Tensors[] = {
    {"model.wte", {embedding}},
    {"model.wpe", {positions}},
    {"model.h.{}.ln_1", {attn_norm}},
    {"model.h.{}.attn.c_attn", {q, k, v}, TensorLayout::transposed},
    {"model.h.{}.attn.c_proj", {o}, TensorLayout::transposed},
    {"model.h.{}.ln_2", {ffn_norm}},
    {"model.h.{}.mlp.c_fc", {up}, TensorLayout::transposed},
    {"model.h.{}.mlp.c_proj", {down}, TensorLayout::transposed},
    {"model.ln_f", {norm}},
    {"lm_head", {lm_head}},
};

const TensorRow kGptBigCodeTensors[] = {
    {"model.wte", {embedding}},
    {"model.wpe", {positions}},
    {"model.h.{}.ln_1", {attn_norm}},
    {"model.h.{}.attn.c_attn", {q, k, v}, TensorLayout::by_kv_head},
    {"model.h.{}.attn.c_proj", {o}},
    {"model.h.{}.ln_2", {ffn_norm}},
    {"model.h.{}.mlp.c_fc", {up}},
    {"model.h.{}.mlp.c_proj", {down}},
    {"model.ln_f", {norm}},
    {"lm_head", {lm_head}},
};

// The norms have the same names, whether they come before the blocks or after the addition.
const TensorRow kOptTensors[] = {
    {"model.decoder.embed_tokens", {embedding}},
    {"model.decoder.embed_positions", {positions}},
    {"model.decoder.project_in", {embed_up}},
    {"model.decoder.layers.{}.self_attn_layer_norm", {attn_norm}},
    {"model.decoder.layers.{}.self_attn.q_proj", {q}},
    {"model.decoder.layers.{}.self_attn.k_proj", {k}},
    {"model.decoder.layers.{}.self_attn.v_proj", {v}},
    {"model.decoder.layers.{}.self_attn.out_proj", {o}},
    {"model.decoder.layers.{}.self_attn_layer_norm", {attn_post_norm}},
    {"model.decoder.layers.{}.final_layer_norm", {ffn_norm}},
    {"model.decoder.layers.{}.fc1", {up}},
    {"model.decoder.layers.{}.fc2", {down}},
    {"model.decoder.layers.{}.final_layer_norm", {ffn_post_norm}},
    {"model.decoder.final_layer_norm", {norm}},
    {"model.decoder.project_out", {head_down}},
    {"lm_head", {lm_head}},
};

const TensorRow kGptNeoXTensors[] = {
    {"model.embed_in", {embedding}},
    {"model.layers.{}.input_layernorm", {attn_norm}},
    {"model.layers.{}.attention.query_key_value", {q, k, v}, TensorLayout::by_kv_head},
    {"model.layers.{}.attention.dense", {o}},
    {"model.layers.{}.post_attention_layernorm", {ffn_norm}},
    {"model.layers.{}.mlp.dense_h_to_4h", {up}},
    {"model.layers.{}.mlp.dense_4h_to_h", {down}},
    {"model.final_layer_norm", {norm}},
    {"lm_head", {lm_head}},
};

const TensorRow kFalconTensors[] = {
    {"model.word_embeddings", {embedding}},
    {"model.h.{}.input_layernorm", {attn_norm}},
    {"model.h.{}.self_attention.query_key_value", {q, k, v}, TensorLayout::by_kv_head},
    {"model.h.{}.self_attention.dense", {o}},
    {"model.h.{}.post_attention_layernorm", {ffn_norm}},
    {"model.h.{}.mlp.dense_h_to_4h", {up}},
    {"model.h.{}.mlp.dense_4h_to_h", {down}},
    {"model.ln_f", {norm}},
    {"lm_head", {lm_head}},
};

// Two norms read the same input.
const TensorRow kFalconTwoNormsTensors[] = {
    {"model.word_embeddings", {embedding}},
    {"model.h.{}.ln_attn", {attn_norm}},
    {"model.h.{}.self_attention.query_key_value", {q, k, v}, TensorLayout::by_kv_head},
    {"model.h.{}.self_attention.dense", {o}},
    {"model.h.{}.ln_mlp", {ffn_norm}},
    {"model.h.{}.mlp.dense_h_to_4h", {up}},
    {"model.h.{}.mlp.dense_4h_to_h", {down}},
    {"model.ln_f", {norm}},
    {"lm_head", {lm_head}},
};

// The first activation of each list is the family's default.
constexpr NamedActivation kTanh[] = {{"gelu_new", Activation::gelu_tanh},
                                     {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                     {"gelu_fast", Activation::gelu_tanh},
                                     {"gelu", Activation::gelu_erf},
                                     {"relu", Activation::relu}};
constexpr NamedActivation kErf[] = {{"gelu", Activation::gelu_erf},
                                    {"gelu_new", Activation::gelu_tanh},
                                    {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                    {"gelu_fast", Activation::gelu_tanh},
                                    {"relu", Activation::relu}};
constexpr NamedActivation kRelu[] = {{"relu", Activation::relu},
                                     {"gelu", Activation::gelu_erf},
                                     {"gelu_new", Activation::gelu_tanh}};

// Settings that all these families share.
void set_older_block(ModelConfig& out, bool bias) {
  out.qkv_bias = out.o_bias = out.mlp_bias = bias;
  out.block.norm = NormKind::layer;
  out.block.norm_bias = true;
  out.block.gated = false;
}

void parse_gpt2(const Json& config, ModelConfig& out) {
  set_older_block(out, true);
  refuse_if_set(config, "add_cross_attention", "attention to another model");
  if (!is_on(config, "scale_attn_weights")) out.block.attention_scale = 1.0;
  out.block.attention_scale_by_layer = config.get_bool("scale_attn_by_inverse_layer_idx", false);
  out.position_rows = out.max_seq_len;
}

void parse_opt(const Json& config, ModelConfig& out) {
  set_older_block(out, is_on(config, "enable_bias"));
  refuse_if_set(config, "_remove_final_layer_norm", "a model without its last norm");
  const auto weighted = config.find("layer_norm_elementwise_affine");
  if (weighted && !weighted->as_bool()) {
    fail(weighted->where(), ": is false: a layer norm without weights is not supported");
  }
  if (!is_on(config, "do_layer_norm_before")) {
    out.block.norm_place = NormPlace::after_add;
  }
  if (const auto dim = config.find("word_embed_proj_dim")) {
    const int64_t embed_dim = in_range(*dim, kLargestDim);
    if (embed_dim != out.dim) out.embed_dim = embed_dim;
  }
  out.position_offset = 2;
  out.position_rows = out.max_seq_len + out.position_offset;
}

void parse_gpt_neox(const Json& config, ModelConfig& out) {
  set_older_block(out, true);
  out.qkv_bias = out.o_bias = is_on(config, "attention_bias");
  out.block.parallel = is_on(config, "use_parallel_residual");
  // Transformers 4.57 saves the rotated part of a head under this name too.
  const auto part = config.find("partial_rotary_factor"), usual = config.find("rotary_pct");
  if (usual) check_same(part, usual);
  if (part && !usual && part->as_double() != 0.25) config.at("rotary_pct");
}

void parse_falcon(const Json& config, ModelConfig& out) {
  set_older_block(out, config.get_bool("bias", false));
  const bool newer = config.get_bool("new_decoder_architecture", false);
  const bool parallel = is_on(config, "parallel_attn");  // decides for older blocks
  out.block.parallel = newer || parallel;
  const auto norms = config.find("num_ln_in_parallel_attn");
  const bool two = newer && (!norms || in_range(*norms, 1, 2) == 2);
  out.block.shared_norm = out.block.parallel && !two;
  if (two) out.tensors = kFalconTwoNormsTensors;
  if (!config.get_bool("alibi", false)) return;
  out.ropes.clear();
  out.layer_ropes.assign(out.layers.size(), -1);
  out.block.score_bias = ScoreBias::alibi_bf16;
}

const Architecture kOlder[] = {
    {.name = "GPT2LMHeadModel",
     .model_type = "gpt2",
     .summary = "GPT-2",
     .parse = parse_gpt2,
     .tensors = kGpt2Tensors,
     .activations = kTanh,
     .norm_eps = "layer_norm_epsilon",
     .activation = "activation_function",
     .tied = true,
     .hidden_dims = 4,
     .rope = {.none = true},
     .model_prefix = "transformer."},
    {.name = "GPTBigCodeForCausalLM",
     .model_type = "gpt_bigcode",
     .summary = "StarCoder 1, SantaCoder",
     .parse = parse_gpt2,
     .tensors = kGptBigCodeTensors,
     .activations = kTanh,
     .norm_eps = "layer_norm_epsilon",
     .activation = "activation_function",
     .tied = true,
     .hidden_dims = 4,
     .rope = {.none = true},
     .model_prefix = "transformer."},
    {.name = "OPTForCausalLM",
     .model_type = "opt",
     .summary = "OPT, Galactica",
     .parse = parse_opt,
     .tensors = kOptTensors,
     .activations = kRelu,
     .norm_eps = nullptr,
     .activation = "activation_function",
     .tied = true,
     .rope = {.none = true}},
    {.name = "GPTNeoXForCausalLM",
     .model_type = "gpt_neox",
     .summary = "GPT-NeoX, Pythia",
     .parse = parse_gpt_neox,
     .tensors = kGptNeoXTensors,
     .activations = kErf,
     .norm_eps = "layer_norm_eps",
     .rope = {.part = 0.25,
              .reads_part = true,
              .theta_key = "rotary_emb_base",
              .part_key = "rotary_pct"},
     .model_prefix = "gpt_neox.",
     .lm_head = "embed_out"},
    {.name = "FalconForCausalLM",
     .model_type = "falcon",
     .summary = "Falcon 1 and 2, with RoPE or ALiBi",
     .parse = parse_falcon,
     .tensors = kFalconTensors,
     .activations = kErf,
     .norm_eps = "layer_norm_epsilon",
     .activation = "activation",
     .tied = true,
     .context = 2048,
     .hidden_dims = 4,
     .model_prefix = "transformer."},
};

}  // namespace

std::span<const Architecture> older_architectures() {
  return kOlder;
}

}  // namespace fp8kv
