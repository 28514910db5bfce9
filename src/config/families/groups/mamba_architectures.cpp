#include "config/families/groups/mamba_architectures.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/expert_architectures.h"
#include "config/families/groups/mamba_config.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr MambaKeys kGraniteKeys = {.heads = "mamba_n_heads",
                                    .head_dim = "mamba_d_head",
                                    .groups = "mamba_n_groups",
                                    .state_dim = "mamba_d_state",
                                    .conv_width = "mamba_d_conv",
                                    .conv_bias = "mamba_conv_bias",
                                    .bias = "mamba_proj_bias",
                                    .out_bias = "mamba_proj_bias",
                                    .expand = "mamba_expand",
                                    .checks_expand = true};

// Leaves Q and K unrotated. Attention learns about positions from the Mamba layers between.
void rotate_nothing(ModelConfig& out) {
  out.ropes.clear();
  out.layer_ropes.assign(out.layers.size(), -1);
}

// Transformers rotates only if the config says "rope".
void parse_positions(const Json& config, ModelConfig& out) {
  const auto said = config.find("position_embedding_type");
  const std::string kind = said ? said->as_string() : "nope";
  if (kind == "nope") return rotate_nothing(out);
  if (kind == "rope") return;
  fail(said->where(), ": is ", said->brief(), ", expected \"rope\" or \"nope\"");
}

void check_says(const Json& config, const char* key, const char* expected) {
  const auto said = config.find(key);
  if (!said || said->as_string() == expected) return;
  fail(said->where(), ": is ", said->brief(), ", expected ", quote(expected),
       ": nothing else is supported in this architecture");
}

void parse_granite_hybrid(const Json& config, ModelConfig& out) {
  parse_granite_moe(config, out);
  parse_mamba(config, kGraniteKeys, out);
  parse_step_limit(config, out);
  parse_positions(config, out);
  check_says(config, "normalization_function", "rmsnorm");
  // A model without experts has this part, which takes every token, as its whole feed-forward part.
  const int64_t shared = in_range(config.at("shared_intermediate_size"), kLargestDim);
  (out.experts ? out.experts->shared_hidden_dim : out.hidden_dim) = shared;
}

// Half of each head rotates, unless rope_parameters says otherwise.
void parse_bamba(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.mlp_bias = config.get_bool("mlp_bias", false);
  parse_mamba(config, kGraniteKeys, out);
  parse_step_limit(config, out);
  // No runtime reads this key outside of rope_parameters.
  if (const auto said = config.find("partial_rotary_factor"); said && said->as_double() != 0.5) {
    fail(said->where(), ": is ", said->brief(), ", expected 0.5");
  }
  // Some runtimes read this key instead.
  const int64_t part = out.ropes[0].rotary_dim;
  const int64_t rotated = part == 0 ? out.head_dim() : part;
  if (const auto said = config.find("attn_rotary_emb"); said && said->as_int() != rotated) {
    fail(said->where(), ": is ", said->brief(), ", expected ", rotated,
         ", the elements of a head that are rotated");
  }
}

constexpr MambaKeys kNemotronKeys = {.heads = "mamba_num_heads",
                                     .head_dim = "mamba_head_dim",
                                     .groups = "n_groups",
                                     .state_dim = "ssm_state_size",
                                     .conv_width = "conv_kernel",
                                     .conv_bias = "use_conv_bias",
                                     .bias = "use_bias",
                                     .out_bias = "use_bias",
                                     .expand = "expand",
                                     .checks_expand = false};

// Refuses keys that only some runtimes read.
void check_nemotron_keys(const Json& config, const ModelConfig& model) {
  refuse_if_set(config, "attention_bias", "a bias of Q, K, V and O");
  refuse_if_set(config, "mamba_proj_bias", "a bias that use_bias does not ask for");
  for (const char* key : {"sliding_window", "mamba_n_groups", "mamba_d_conv", "mamba_expand",
                          "mamba_conv_bias", "mamba_dt_limit"}) {
    if (const auto said = config.find(key)) {
      fail(said->where(), ": is ", said->brief(), ": is not supported in this architecture");
    }
  }
  check_says(config, "mamba_hidden_act", "silu");
  check_no_step_limit(config);
  // Transformers 5.24 raises time steps to time_step_min; other runtimes use the key only in
  // training.
  constexpr double kUsualStep = 0.001;
  if (const auto least = config.find("time_step_min"); least && least->as_double() > kUsualStep) {
    fail(least->where(), ": is ", least->brief(), ", expected ", kUsualStep,
         " or less: runtimes differ in whether they limit time steps by it");
  }
  constexpr int64_t kUsualHead = 128;  // transformers' default
  if (model.head_dim() != kUsualHead) config.at("head_dim");
  if (const auto said = config.find("attention_head_dim");
      said && said->as_int() != model.head_dim()) {
    fail(said->where(), ": is ", said->brief(), ", but heads have ", model.head_dim(),
         " elements by head_dim");
  }
}

// If a config has both keys, they must agree, since runtimes differ in which one they read.
void check_same_blocks(const Json& config) {
  const auto letters = config.find("hybrid_override_pattern");
  const auto names = config.find("layers_block_type");
  if (!letters || !names) return;
  std::string from_names;
  for (size_t i = 0; i < names->size(); ++i) {
    const std::string& name = (*names)[i].as_string();
    from_names += name == "mlp"                                     ? '-'
                  : name == "moe"                                   ? 'E'
                  : name == "attention" || name == "full_attention" ? '*'
                                                                    : 'M';
  }
  if (from_names == letters->as_string()) return;
  throw Error(cat(names->where(), ": stands for ", quote(from_names), ", but ", letters->where(),
                  " is ", letters->brief()),
              "leave out the one that is wrong: runtimes differ in which they take");
}

void parse_nemotron_experts(const Json& config, ModelConfig& out) {
  parse_experts(config, {{"n_routed_experts", "num_local_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) return;
  refuse_if_set(config, "mlp_bias", "a bias beside experts");
  parse_sigmoid_router(config, out);
  ExpertsConfig& experts = *out.experts;
  experts.routing.scale = positive_or(config, "routed_scaling_factor", 1.0);
  if (const auto inner = config.find("moe_latent_size")) {
    experts.inner_dim = in_range(*inner, kLargestDim);
  }
  if (const auto shared = config.find("n_shared_experts"); shared && shared->as_int() != 1) {
    fail(shared->where(), ": is ", shared->brief(),
         ", expected 1: another number of shared experts is not supported");
  }
  experts.shared_hidden_dim =
      in_range(config.at("moe_shared_expert_intermediate_size"), kLargestDim);
}

void parse_nemotron_h(const Json& config, ModelConfig& out) {
  check_nemotron_keys(config, out);
  check_same_blocks(config);
  out.block.gated = false;
  out.mlp_bias = config.get_bool("mlp_bias", false);
  parse_mamba(config, kNemotronKeys, out);
  parse_nemotron_experts(config, out);
}

constexpr MambaKeys kFalconKeys = {.heads = "mamba_n_heads",
                                   .head_dim = "mamba_d_head",
                                   .groups = "mamba_n_groups",
                                   .state_dim = "mamba_d_state",
                                   .conv_width = "mamba_d_conv",
                                   .conv_bias = "mamba_conv_bias",
                                   .bias = "mamba_proj_bias",
                                   .out_bias = "projectors_bias",
                                   .expand = "mamba_expand",
                                   .checks_expand = true,
                                   .width = "mamba_d_ssm"};

// [count] factors, one for each part of a product's result; all 1 if the key is missing.
std::vector<double> multipliers(const Json& config, const char* key, size_t count) {
  const auto said = config.find(key);
  if (!said) return std::vector<double>(count, 1.0);
  if (!said->is_array() || said->size() != count) {
    fail(said->where(), ": is ", said->brief(), ", expected an array of ", count, " numbers");
  }
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) out.push_back(positive_number((*said)[i]));
  return out;
}

StateMultipliers state_multipliers(const Json& config) {
  const std::vector<double> parts = multipliers(config, "ssm_multipliers", 5);
  return {.in = positive_or(config, "ssm_in_multiplier", 1.0),
          .gate = parts[0],
          .v = parts[1],
          .k = parts[2],
          .q = parts[3],
          .step = parts[4],
          .out = positive_or(config, "ssm_out_multiplier", 1.0)};
}

void parse_falcon_h1(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.mlp_bias = config.get_bool("mlp_bias", false);
  // The key must exist: transformers' default is 1024. Null leaves the width to mamba_expand.
  if (!mentions(config, "mamba_d_ssm")) config.at("mamba_d_ssm");
  parse_mamba(config, kFalconKeys, out);
  parse_step_limit(config, out);
  const bool before = is_on(config, "mamba_norm_before_gate");
  const bool normed = config.get_bool("mamba_rms_norm", false);
  out.recurrence->norm = !normed  ? StateNorm::none
                         : before ? StateNorm::groups
                                  : StateNorm::groups_after_gate;
  out.recurrence->multipliers = state_multipliers(config);
  BlockConfig& block = out.block;
  block.embed_multiplier = positive_or(config, "embedding_multiplier", 1.0);
  block.logit_multiplier = positive_or(config, "lm_head_multiplier", 1.0);
  block.attention_in_multiplier = positive_or(config, "attention_in_multiplier", 1.0);
  block.attention_out_multiplier = positive_or(config, "attention_out_multiplier", 1.0);
  const std::vector<double> mlp = multipliers(config, "mlp_multipliers", 2);
  block.gate_multiplier = mlp[0];
  block.down_multiplier = mlp[1];
  out.ropes[0].k_factor = positive_or(config, "key_multiplier", 1.0);
}

// The tensors of a Mamba-2 layer.
TensorRows mamba() {
  return {{"model.layers.{}.mamba.in_proj", {state_gate, state_v, state_k, state_q, state_step}},
          {"model.layers.{}.mamba.conv1d", {conv_v, conv_k, conv_q}},
          {"model.layers.{}.mamba.A_log", {state_decay}, TensorLayout::rows, true},
          {"model.layers.{}.mamba.dt_bias", {state_step_bias}, TensorLayout::rows, true},
          {"model.layers.{}.mamba.D", {state_skip}, TensorLayout::rows, true},
          {"model.layers.{}.mamba.norm", {state_norm}},
          {"model.layers.{}.mamba.out_proj", {state_out}}};
}

std::span<const TensorRow> granite_hybrid_tensors() {
  // shared_mlp is the feed-forward part of a dense layer, and the shared expert of the other
  // layers.
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              attention_out(),
              mamba(),
              next_norm(),
              {{"model.layers.{}.shared_mlp.input_linear", {gate, up}},
               {"model.layers.{}.shared_mlp.output_linear", {down}},
               {"model.layers.{}.block_sparse_moe.router.layer", {router}},
               {"model.layers.{}.block_sparse_moe.input_linear", {expert_gate, expert_up}},
               {"model.layers.{}.block_sparse_moe.output_linear", {expert_down}},
               {"model.layers.{}.shared_mlp.input_linear", {shared_gate, shared_up}},
               {"model.layers.{}.shared_mlp.output_linear", {shared_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> granite_hybrid_tensors_apart() {
  static const TensorRows rows = with_experts(granite_hybrid_tensors(), granite_experts_apart());
  return rows;
}

// Falcon-H1 uses this table too; each of its layers has all of these tensors.
std::span<const TensorRow> bamba_tensors() {
  static const TensorRows rows = joined({opening(),
                                         qkv(),
                                         attention_out(),
                                         mamba(),
                                         {{"model.layers.{}.pre_ff_layernorm", {ffn_norm}},
                                          {"model.layers.{}.feed_forward.gate_proj", {gate}},
                                          {"model.layers.{}.feed_forward.up_proj", {up}},
                                          {"model.layers.{}.feed_forward.down_proj", {down}},
                                          {"model.final_layernorm", {norm}},
                                          {"lm_head", {lm_head}}}});
  return rows;
}

TensorRows nemotron_rows(const TensorRows& experts) {
  // Each layer is a single block of any kind, with one norm.
  return joined(
      {{{"model.embeddings", {embedding}},
        {"model.layers.{}.norm", {attn_norm}},
        {"model.layers.{}.mixer.q_proj", {q}},
        {"model.layers.{}.mixer.k_proj", {k}},
        {"model.layers.{}.mixer.v_proj", {v}},
        {"model.layers.{}.mixer.o_proj", {o}},
        {"model.layers.{}.mixer.in_proj", {state_gate, state_v, state_k, state_q, state_step}},
        {"model.layers.{}.mixer.conv1d", {conv_v, conv_k, conv_q}},
        {"model.layers.{}.mixer.A_log", {state_decay}, TensorLayout::rows, true},
        {"model.layers.{}.mixer.dt_bias", {state_step_bias}, TensorLayout::rows, true},
        {"model.layers.{}.mixer.D", {state_skip}, TensorLayout::rows, true},
        {"model.layers.{}.mixer.norm", {state_norm}},
        {"model.layers.{}.mixer.out_proj", {state_out}},
        {"model.layers.{}.norm", {ffn_norm}},
        {"model.layers.{}.mixer.up_proj", {up}},
        {"model.layers.{}.mixer.down_proj", {down}},
        {"model.layers.{}.mixer.gate", {router}},
        {"model.layers.{}.mixer.gate.e_score_correction_bias", {choice_bias}},
        {"model.layers.{}.mixer.fc1_latent_proj", {experts_in}},
        {"model.layers.{}.mixer.fc2_latent_proj", {experts_out}}},
       experts,
       {{"model.layers.{}.mixer.shared_experts.up_proj", {shared_up}},
        {"model.layers.{}.mixer.shared_experts.down_proj", {shared_down}},
        {"model.norm_f", {norm}},
        {"lm_head", {lm_head}}}});
}

std::span<const TensorRow> nemotron_h_tensors() {
  static const TensorRows rows =
      nemotron_rows({{"model.layers.{}.mixer.experts.{e}.up_proj", {expert_up}},
                     {"model.layers.{}.mixer.experts.{e}.down_proj", {expert_down}}});
  return rows;
}

// Experts as transformers 5 keeps them in memory.
std::span<const TensorRow> nemotron_h_tensors_together() {
  static const TensorRows rows = nemotron_rows(
      {{"model.layers.{}.mixer.experts.up_proj", {expert_up}, TensorLayout::rows, true},
       {"model.layers.{}.mixer.experts.down_proj", {expert_down}, TensorLayout::rows, true}});
  return rows;
}

constexpr NamedActivation kSquaredRelu[] = {{"relu2", Activation::relu_squared}};

const Architecture kMamba[] = {
    {.name = "GraniteMoeHybridForCausalLM",
     .model_type = "granitemoehybrid",
     .summary = "Granite 4, dense and with experts",
     .states = true,
     .parse = parse_granite_hybrid,
     .tensors = granite_hybrid_tensors(),
     .other_tensors = granite_hybrid_tensors_apart(),
     .activations = kSilu},
    {.name = "NemotronHForCausalLM",
     .model_type = "nemotron_h",
     .summary = "Nemotron-H, Nemotron Nano 2 and Nemotron 3",
     .states = true,
     .blocks = true,
     .parse = parse_nemotron_h,
     .tensors = nemotron_h_tensors(),
     .other_tensors = nemotron_h_tensors_together(),
     .activations = kSquaredRelu,
     .norm_eps = "layer_norm_epsilon",
     .activation = "mlp_hidden_act",
     .rope = {.none = true}},
    {.name = "BambaForCausalLM",
     .model_type = "bamba",
     .summary = "Bamba",
     .states = true,
     .parse = parse_bamba,
     .tensors = bamba_tensors(),
     .activations = kSilu,
     .rope = {.part = 0.5, .reads_part = true}},
    {.name = "FalconH1ForCausalLM",
     .model_type = "falcon_h1",
     .summary = "Falcon-H1",
     .parse = parse_falcon_h1,
     .tensors = bamba_tensors(),
     .activations = kSilu,
     .rope = {.theta = 10000.0, .older_theta = 100000.0}},
};

}  // namespace

std::span<const Architecture> mamba_architectures() {
  return kMamba;
}

}  // namespace fp8kv
