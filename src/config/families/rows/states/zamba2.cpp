// Zamba 2: Mamba-2 layers, some of which first use a block of attention and a feed-forward part
// that others use too.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/families/groups/mamba_config.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr NamedActivation kZamba2Activations[] = {
    {"gelu", Activation::gelu_erf},      {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_new", Activation::gelu_tanh}, {"silu", Activation::silu},
    {"swish", Activation::silu},         {"relu", Activation::relu}};

constexpr MambaKeys kZamba2Keys = {.heads = "n_mamba_heads",
                                   .head_dim = "mamba_headdim",
                                   .groups = "mamba_ngroups",
                                   .state_dim = "mamba_d_state",
                                   .conv_width = "mamba_d_conv",
                                   .conv_bias = "use_conv_bias",
                                   .bias = "add_bias_linear",
                                   .out_bias = "add_bias_linear",
                                   .expand = "mamba_expand",
                                   .checks_expand = true};

// Transformers gives the convolution a bias, whatever the key says, and vLLM reads the key.
void check_conv_bias(const Json& config) {
  const auto said = config.find("use_conv_bias");
  if (!said || said->as_bool()) return;
  fail(said->where(), ": is false, expected true: runtimes differ in whether they read it");
}

// Transformers raises the time steps of prompts to time_step_min, and not those of later tokens.
void check_least_step(const Json& config) {
  constexpr double kUsualStep = 0.001;
  const auto least = config.find("time_step_min");
  if (!least || least->as_double() <= kUsualStep) return;
  fail(least->where(), ": is ", least->brief(), ", expected ", kUsualStep,
       " or less: runtimes differ in whether they limit time steps by it");
}

void parse_zamba2_states(const Json& config, ModelConfig& out) {
  check_conv_bias(config);
  check_least_step(config);
  parse_mamba(config, kZamba2Keys, out);
  if (!out.recurrence) return;
  out.recurrence->conv_bias = true;
  out.recurrence->norm_eps = 1e-5;  // a constant in transformers
}

void parse_shared_blocks(const Json& config, ModelConfig& out) {
  constexpr int64_t kUsualRank = 128;
  int64_t uses = 0;
  for (int64_t i = 0; i < out.n_layers(); ++i) uses += out.attends(i) ? 1 : 0;
  if (uses == 0) {
    fail(config.at("layers_block_type").where(), ": has no hybrid layer, expected one at least");
  }
  SharedBlockConfig& block = out.shared_block.emplace();
  const auto blocks = config.find("num_mem_blocks"), rank = config.find("adapter_rank");
  block.blocks = std::min(uses, blocks ? in_range(*blocks, kMostLayers) : 1);
  block.rank = rank ? in_range(*rank, kLargestDim) : kUsualRank;
  block.adapts_attention = config.get_bool("use_shared_attention_adapter", false);
  if (block.adapts_attention && out.n_kv_heads() != out.n_heads) {
    fail(config.at("num_key_value_heads").where(), ": is ", out.n_kv_heads(), ", expected ",
         out.n_heads, ": adapters of K and V are as wide as those of Q");
  }
}

// Transformers counts the uses of blocks by hybrid_layer_ids, where it is there.
void check_layer_ids(const Json& config, const ModelConfig& model) {
  const auto ids = config.find("hybrid_layer_ids");
  if (!ids) return;
  size_t uses = 0;
  bool same = true;
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    if (!model.attends(i)) continue;
    same = same && uses < ids->size() && (*ids)[uses].as_int() == i;
    ++uses;
  }
  if (same && uses == ids->size()) return;
  fail(ids->where(), ": is ", ids->brief(), ", expected the hybrid layers of layers_block_type");
}

void parse_zamba2(const Json& config, ModelConfig& out) {
  config.at("layers_block_type");
  if (!out.tied_embeddings) {
    fail(config.at("tie_word_embeddings").where(),
         ": is false, expected true: else transformers shares no block between layers");
  }
  refuse_if_set(config, "use_long_context", "a rotation for long texts");
  parse_zamba2_states(config, out);
  parse_shared_blocks(config, out);
  check_layer_ids(config, out);
  out.mlp_bias = config.get_bool("add_bias_linear", false);
  out.block.attention_scale = std::sqrt(2.0 / static_cast<double>(out.head_dim()));
  if (!config.get_bool("use_mem_rope", false)) {
    out.ropes.clear();
    out.layer_ropes.assign(out.layers.size(), -1);
  }
  // These follow from other keys, whatever they say, or concern training and speed.
  for (const char* key :
       {"attention_head_dim", "attention_hidden_size", "kv_channels", "num_query_groups",
        "use_mem_eff_path", "use_mamba_kernels", "num_logits_to_keep"}) {
    config.find(key);
  }
}

TensorRow number_row(const char* name, TensorRole role) {
  return {.name = name, .roles = {role}, .bare = true};
}

TensorRows shared_block_rows() {
  return {{"model.layers.{block}.shared_transformer.input_layernorm", {attn_norm}},
          {"model.layers.{block}.shared_transformer.self_attn.q_proj", {q}},
          {"model.layers.{block}.shared_transformer.self_attn.k_proj", {k}},
          {"model.layers.{block}.shared_transformer.self_attn.v_proj", {v}},
          {"model.layers.{block}.shared_transformer.self_attn.linear_q_adapter_list.{use}.0",
           {q_lora_down}},
          {"model.layers.{block}.shared_transformer.self_attn.linear_q_adapter_list.{use}.1",
           {q_lora_up}},
          {"model.layers.{block}.shared_transformer.self_attn.linear_k_adapter_list.{use}.0",
           {k_lora_down}},
          {"model.layers.{block}.shared_transformer.self_attn.linear_k_adapter_list.{use}.1",
           {k_lora_up}},
          {"model.layers.{block}.shared_transformer.self_attn.linear_v_adapter_list.{use}.0",
           {v_lora_down}},
          {"model.layers.{block}.shared_transformer.self_attn.linear_v_adapter_list.{use}.1",
           {v_lora_up}},
          {"model.layers.{block}.shared_transformer.self_attn.o_proj", {o}},
          {"model.layers.{block}.shared_transformer.pre_ff_layernorm", {ffn_norm}},
          {"model.layers.{block}.shared_transformer.feed_forward.gate_up_proj", {gate, up}},
          {"model.layers.{block}.shared_transformer.feed_forward.gate_up_proj_adapter_list.{use}.0",
           {ffn_lora_down}},
          {"model.layers.{block}.shared_transformer.feed_forward.gate_up_proj_adapter_list.{use}.1",
           {gate_lora_up, up_lora_up}},
          {"model.layers.{block}.shared_transformer.feed_forward.down_proj", {down}},
          {"model.layers.{}.linear", {block_out}}};
}

TensorRows mamba_rows() {
  return {{"model.layers.{}.{within}input_layernorm", {state_in_norm}},
          {"model.layers.{}.{within}mamba.in_proj",
           {state_gate, state_v, state_k, state_q, state_step}},
          {"model.layers.{}.{within}mamba.conv1d", {conv_v, conv_k, conv_q}},
          number_row("model.layers.{}.{within}mamba.A_log", state_decay),
          number_row("model.layers.{}.{within}mamba.dt_bias", state_step_bias),
          number_row("model.layers.{}.{within}mamba.D", state_skip),
          {"model.layers.{}.{within}mamba.norm", {state_norm}},
          {"model.layers.{}.{within}mamba.out_proj", {state_out}}};
}

std::span<const TensorRow> zamba2_tensors() {
  static const TensorRows rows =
      joined({{{"model.embed_tokens", {embedding}}},
              shared_block_rows(),
              mamba_rows(),
              {{"model.final_layernorm", {norm}}, {"lm_head", {lm_head}}}});
  return rows;
}

}  // namespace

Architecture zamba2() {
  return {.name = "Zamba2ForCausalLM",
          .model_type = "zamba2",
          .summary = "Zamba 2",
          .states = true,
          .parse = parse_zamba2,
          .tensors = zamba2_tensors(),
          .activations = kZamba2Activations,
          .tied = true,
          .context = 4096,
          .hidden_dims = 4};
}

}  // namespace fp8kv
