// Ling 3: latent attention with a gate for each head, in the last layer of every group. The others
// keep the state of Kimi Delta Attention, whose decays have a least value.
#include <string>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/ling.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Transformers goes by layer_types, and vLLM by layer_group_size alone. Without the list,
// transformers differs in layers behind the last whole group.
void check_groups(const Json& config, const ModelConfig& out) {
  const Json size = config.at("layer_group_size");
  const int64_t group = in_range(size, kMostLayers), n_layers = out.n_layers();
  for (int64_t i = 0; i < n_layers; ++i) {
    const bool last = (i + 1) % group == 0, behind = i >= n_layers / group * group;
    if (!config.has("layer_types") && behind && !last) {
      throw Error(cat(size.where(), ": is ", group, ", of which ", n_layers,
                      " layers are no multiple: runtimes differ in what layer ", i, " is"),
                  "say each layer's kind in layer_types");
    }
    if (out.attends(i) == (last || behind)) continue;
    fail(size.where(), ": is ", group, ", contrary to layer_types at layer ", i,
         ": runtimes differ in which they go by");
  }
}

// Switches of the published code that change what a layer computes.
void check_ling_switches(const Json& config) {
  refuse_if_set(config, "tie_word_embeddings", "an embedding in place of lm_head");
  refuse_if_set(config, "use_mla_nope", "latent attention that does not rotate");
  for (const char* key : {"use_bias", "use_qkv_bias"}) {
    refuse_if_set(config, key, "biases of products");
  }
  for (const char* key : {"no_kda_lora", "rope_interleave", "linear_silu"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(), ": is false, expected true in this architecture");
  }
  // These concern draft layers and training, or nothing that runtimes read: all norms are RMS, and
  // Q and K of states have length 1.
  for (const char* key : {"mtp_loss_scaling_factor", "mtp_use_kda", "use_qk_norm", "use_rmsnorm"}) {
    config.find(key);
  }
  check_says(config, "linear_attention", "kda", "the kind of linear attention");
  check_says(config, "gated_attention_proj_granularity_type", "head_wise",
             "what latent attention's gate has a number for");
  check_taken(config, "num_kv_heads_for_linear_attn", 0, "K has as many heads as Q");
  check_taken(config, "moe_layer_freq", 1, "layers behind the dense ones all have experts");
  check_taken(config, "group_norm_size", 1, "each head's output is normed by itself");
  for (const char* key : {"expert_swiglu_limit_list", "share_expert_swiglu_limit_list"}) {
    const auto limits = config.find(key);
    for (size_t i = 0; limits && i < limits->size(); ++i) {
      if ((*limits)[i].as_double() == 0.0) continue;
      fail((*limits)[i].where(), ": is ", (*limits)[i].brief(),
           ", expected 0: transformers clamps no SwiGLU of this architecture");
    }
  }
}

// Sizes of the state: of attention's heads in published files, or keys that transformers saves.
void parse_ling_state(const Json& config, ModelConfig& out) {
  const auto at = [&](const char* saved, const char* published) {
    const auto other = config.find(published);
    return config.has(saved) || !other ? config.at(saved) : *other;
  };
  RecurrenceConfig& state = out.recurrence.emplace();
  state.k_dim = state.v_dim = in_range(at("linear_head_dim", "head_dim"), kMostStateRows);
  state.k_heads = state.v_heads =
      in_range(at("linear_num_heads", "num_attention_heads"), kLargestDim / kMostStateRows);
  state.conv_width =
      in_range(at("linear_conv_kernel_dim", "short_conv_kernel_size"), kMostConvWidth);
  state.gate = Activation::sigmoid;
  state.steps_by_row = true;
  // Defaults differ: transformers bounds decays where the keys are missing, and vLLM does not.
  if (!config.at("kda_safe_gate").as_bool()) {
    config.find("kda_lower_bound");
    return;
  }
  const Json least = config.at("kda_lower_bound");
  state.least_log_decay = least.as_double();
  if (!(state.least_log_decay < 0.0) || state.least_log_decay < -1e4) {
    fail(least.where(), ": is ", least.brief(), ", expected a number below 0, and above -10,000");
  }
}

// The key that the config has, of two for one number. Published files have n_group, and
// transformers saves num_expert_group.
std::string told(const Json& config, const char* published, const char* saved) {
  check_same(config.find(published), config.find(saved));
  return config.has(saved) ? saved : published;
}

// Throws for a null, which transformers takes for false. Elsewhere it is like a missing key.
void check_renormalize(const Json& config) {
  for (size_t i = 0; i < config.size(); ++i) {
    if (config.key(i) != "moe_renormalize" || !config.value(i).is_null()) continue;
    fail(config.where(), ": the key 'moe_renormalize' is null, which transformers takes for false");
  }
}

void parse_ling_experts(const Json& config, ModelConfig& out) {
  const std::string per_token = told(config, "num_experts_per_tok", "num_experts_per_token");
  parse_experts(config,
                {{"num_experts", "num_local_experts"}, "moe_intermediate_size", per_token.c_str()},
                out);
  check_router_says(config, "score_function", "sigmoid");
  check_router_says(config, "scoring_func", "sigmoid");
  check_router_says(config, "topk_method", "noaux_tc");
  config.find("router_dtype");  // of weights in vLLM
  if (!is_on(config, "moe_router_enable_expert_bias")) {
    fail(config.at("moe_router_enable_expert_bias").where(),
         ": is false, expected true: transformers adds the bias of the choice");
  }
  check_first_dense(config, out);
  const std::string groups = told(config, "n_group", "num_expert_group");
  const std::string normalised = told(config, "norm_topk_prob", "moe_renormalize");
  const std::string n_shared = told(config, "num_shared_experts", "n_shared_experts");
  if (!out.experts) return;
  ExpertsConfig& experts = *out.experts;
  for (const char* key : {groups.c_str(), "topk_group"}) config.at(key);
  parse_expert_groups(config, out, groups.c_str());
  experts.choice_bias = true;
  experts.routing.score = RouterScore::sigmoid;
  experts.routing.normalise = true;
  check_renormalize(config);
  if (!is_on(config, normalised.c_str())) {
    fail(config.at(normalised).where(), ": is false, expected true: vLLM divides the weights of ",
         "experts by their sum whatever this says");
  }
  experts.routing.epsilon = 1e-20;
  experts.routing.scale = positive_number(config.at("routed_scaling_factor"));
  const Json shared = config.at(n_shared);
  experts.shared_hidden_dim =
      experts.hidden_dim * in_range(shared, kLargestDim / experts.hidden_dim);
  check_taken(config, "moe_shared_expert_intermediate_size",
              static_cast<double>(experts.hidden_dim),
              "transformers makes a shared expert as wide as the others");
}

TensorRow ling_bare(const char* name, TensorRole role) {
  return {.name = name, .roles = {role}, .bare = true};
}

// Transformers saves a state's last product under the name that attention's has.
TensorRows ling_state() {
  return {ling_row("model.layers.{}.attention.q_proj", state_q),
          ling_row("model.layers.{}.attention.k_proj", state_k),
          ling_row("model.layers.{}.attention.v_proj", state_v),
          ling_row("model.layers.{}.attention.g_proj", state_gate),
          ling_row("model.layers.{}.attention.f_proj", state_step),
          ling_row("model.layers.{}.attention.b_proj", state_strength),
          ling_row("model.layers.{}.attention.q_conv1d", conv_q),
          ling_row("model.layers.{}.attention.k_conv1d", conv_k),
          ling_row("model.layers.{}.attention.v_conv1d", conv_v),
          ling_bare("model.layers.{}.attention.A_log", state_decay),
          ling_bare("model.layers.{}.attention.dt_bias", state_step_bias),
          ling_row("model.layers.{}.attention.o_norm", state_norm),
          {.name = "model.layers.{}.attention.o_proj",
           .roles = {state_out},
           .other_name = "model.layers.{}.attention.dense"}};
}

TensorRows ling_tensors(bool q_in_two) {
  return joined({{ling_row("model.word_embeddings", embedding),
                  ling_row("model.layers.{}.input_layernorm", attn_norm)},
                 ling_attention(q_in_two),
                 {ling_row("model.layers.{}.attention.g_proj", attn_gate)},
                 ling_state(),
                 ling_feed_forward()});
}

std::span<const TensorRow> ling_q_tensors() {
  static const TensorRows rows = ling_tensors(true);
  return rows;
}

std::span<const TensorRow> ling_plain_tensors() {
  static const TensorRows rows = ling_tensors(false);
  return rows;
}

void parse_ling3(const Json& config, ModelConfig& out) {
  check_ling_switches(config);
  check_groups(config, out);
  parse_latent(config, out);
  out.tensors = out.latent->q_rank > 0 ? ling_q_tensors() : ling_plain_tensors();
  out.block.attention_gate = AttentionGate::sigmoid_of_heads;
  check_rotated(config, out);
  parse_ling_state(config, out);
  parse_ling_experts(config, out);
}

Architecture ling(const char* name) {
  return {
      .name = name,
      .model_type = "bailing_hybrid",
      .summary = "Ling 3",
      .states = true,
      .parse = parse_ling3,
      .tensors = ling_plain_tensors(),
      .activations = kSilu,
      .rope = {
          .theta = 6e6, .checks_part = true, .pairs = RopePairs::neighbours, .reads_mscale = true}};
}

}  // namespace

Architecture ling3() {
  return ling("BailingMoeV3ForCausalLM");
}

Architecture ling3_saved() {
  return ling("BailingHybridForCausalLM");
}

}  // namespace fp8kv
