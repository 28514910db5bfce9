// Kimi K3: Kimi Linear with gates of attention's output, decays that have a bound, experts at
// another width than the stream's, SiTU, and attention residuals.
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/kda_states.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/kimi.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr std::string_view kK3Inside[] = {"kimi_linear"};
constexpr NamedActivation kSitu[] = {{"situ", Activation::silu}, {"silu", Activation::silu}};

void check_granted_by_k3(const Json& config) {
  refuse_if_set(config, "tie_word_embeddings", "an embedding in place of lm_head");
  if (is_on(config, "mla_use_nope")) return;
  fail(config.at("mla_use_nope").where(),
       ": is false, expected true: latent attention does not rotate in this architecture");
}

void parse_k3_state(const Json& config, ModelConfig& out) {
  const Json linear = config.at("linear_attn_config");
  parse_kda(config, out);
  const Json full = linear.at("use_full_rank_gate");
  if (!full.as_bool()) {
    fail(full.where(), ": is false, expected true: gates are made by one product here");
  }
  out.recurrence->full_gate = true;
  const auto least = linear.find("gate_lower_bound");
  if (!least) return;
  out.recurrence->least_log_decay = least->as_double();
  if (least->as_double() < 0.0 && least->as_double() >= -1e4) return;
  fail(least->where(), ": is ", least->brief(), ", expected a number below 0, and above -10,000");
}

void parse_k3_experts(const Json& config, ModelConfig& out) {
  parse_kimi_experts(config, out);
  if (!out.experts) return;
  const auto inner = config.find("routed_expert_hidden_size");
  const bool normed = config.get_bool("latent_moe_use_norm", false);
  if (inner) out.experts->inner_dim = in_range(*inner, kLargestDim);
  out.experts->inner_out_norm = inner && normed;
}

// Dense parts, shared experts and routed ones all have SiTU, or none has.
void parse_situ(const Json& config, ModelConfig& out) {
  if (config.get_string("hidden_act", "situ") != "situ") return;
  const auto limit = [&](const char* key) {
    return static_cast<float>(positive_number(config.at(key)));
  };
  const ClampedSwiglu situ{.alpha = limit("activation_situ_beta"),
                           .limit = limit("activation_situ_linear_beta"),
                           .form = SwigluForm::situ};
  out.swiglus.assign(out.layers.size(), {.routed = situ, .dense = situ});
}

void parse_attention_residuals(const Json& config, ModelConfig& out) {
  const auto block = config.find("attn_res_block_size");
  if (!block) return;
  out.attn_res_block = in_range(*block, kLargestDim);
  const int64_t sources = 1 + out.attn_res_blocks(out.n_layers());
  if (sources <= kMostMixed) return;
  fail(block->where(), ": is ", block->brief(), ", which makes ", sources - 1, " blocks of ",
       out.n_layers(), " layers, expected ", kMostMixed - 1, " at most");
}

void parse_kimi_k3(const Json& config, ModelConfig& out) {
  for (const char* key : {"rope_scaling", "rope_theta", "rope_parameters"}) config.find(key);
  check_granted_by_k3(config);
  check_kimi_lists(config, out);
  config.at("q_lora_rank");
  parse_latent(config, out);
  const auto q_dim = static_cast<double>(out.latent->nope_dim + out.latent->rope_dim);
  out.block.attention_scale = 1 / std::sqrt(q_dim);
  if (config.get_bool("mla_use_output_gate", false)) {
    out.block.attention_gate = AttentionGate::sigmoid;
  }
  parse_k3_state(config, out);
  parse_k3_experts(config, out);
  parse_situ(config, out);
  parse_attention_residuals(config, out);
}

TensorRows attention_residuals() {
  return {{"model.layers.{}.self_attention_res_norm", {attn_res_norm}},
          {"model.layers.{}.self_attention_res_proj", {attn_res}},
          {"model.layers.{}.mlp_res_norm", {ffn_res_norm}},
          {"model.layers.{}.mlp_res_proj", {ffn_res}},
          {"model.output_attn_res_norm", {head_res_norm}},
          {"model.output_attn_res_proj", {head_res}}};
}

std::span<const TensorRow> kimi_k3_tensors() {
  static const TensorRows rows =
      joined({opening(),
              latent_attention(true),
              {{"model.layers.{}.self_attn.g_proj", {attn_gate}},
               {"model.layers.{}.self_attn.g_proj", {state_gate}}},
              attention_out(),
              ungated_kda_tensors(VectorForm::of_k_dim),
              next_norm(),
              kimi_dense_or_experts(),
              {{"model.layers.{}.block_sparse_moe.routed_expert_down_proj", {experts_in}},
               {"model.layers.{}.block_sparse_moe.routed_expert_norm", {experts_sum_norm}},
               {"model.layers.{}.block_sparse_moe.routed_expert_up_proj", {experts_out}}},
              attention_residuals(),
              ending()});
  return rows;
}

}  // namespace

Architecture kimi_k3() {
  return {.name = "KimiK3ForConditionalGeneration",
          .model_type = "kimi_k3",
          .summary = "Kimi K3",
          .states = true,
          .parse = parse_kimi_k3,
          .tensors = kimi_k3_tensors(),
          .activations = kSitu,
          .rope = {.none = true},
          .inner_types = kK3Inside};
}

}  // namespace fp8kv
