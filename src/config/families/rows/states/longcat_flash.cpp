// LongCat Flash: each of its layers is two here, with latent attention and a dense part each. The
// experts of the first join the stream behind the second, and some of them return their input.
#include <cmath>
#include <string>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr int64_t kMostIdentities = 4096;

// Keys that vLLM reads, and what transformers takes for granted instead.
void check_longcat_switches(const Json& config) {
  for (const char* key : {"mla_scale_q_lora", "mla_scale_kv_lora"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(),
         ": is false, expected true: transformers multiplies the vectors all the same");
  }
  check_says(config, "zero_expert_type", "identity", "expert without matrices");
  check_says(config, "attention_method", "MLA", "attention");
  refuse_if_set(config, "router_bias", "a bias of the router");
  refuse_if_set(config, "norm_topk_prob", "dividing the weights of experts by their sum");
  if (const auto ratio = config.find("ngram_vocab_size_ratio")) {
    fail(ratio->where(), ": is ", ratio->brief(), ": embeddings of n-grams are not supported");
  }
}

// Heads of Q are the sum of their two parts, and K rotates as many elements as head_dim says.
void check_longcat_heads(const Json& config, const LatentConfig& latent) {
  const auto whole = config.find("qk_head_dim");
  const int64_t sum = latent.nope_dim + latent.rope_dim;
  if (whole && whole->as_int() != sum) {
    fail(whole->where(), ": is ", whole->brief(), ", expected ", sum,
         ", the sum of qk_nope_head_dim and qk_rope_head_dim");
  }
  constexpr int64_t kUsual = 64;  // transformers' default
  const auto rotated = config.find("head_dim");
  if ((rotated ? rotated->as_int() : kUsual) == latent.rope_dim) return;
  fail(rotated ? rotated->where() : cat(config.where(), ": head_dim"), ": is ",
       rotated ? rotated->brief() : cat("missing, which means ", kUsual), ", expected ",
       latent.rope_dim, ", which is qk_rope_head_dim: transformers takes it for the angles");
}

// The first of two keys for one number, or the second if the config has that alone.
std::string said(const Json& config, const char* own, const char* mapped) {
  check_same(config.find(own), config.find(mapped));
  return config.has(own) || !config.has(mapped) ? own : mapped;
}

void parse_longcat_experts(const Json& config, ModelConfig& out) {
  const std::string hidden = said(config, "expert_ffn_hidden_size", "moe_intermediate_size");
  const std::string per_token = said(config, "moe_topk", "num_experts_per_tok");
  const std::string count = said(config, "n_routed_experts", "num_local_experts");
  said(config, "ffn_hidden_size", "intermediate_size");
  parse_experts(config, {{count.c_str()}, hidden.c_str(), per_token.c_str()}, out);
  if (!out.experts) {
    const Json none = config.at(count);
    fail(none.where(), ": is ", none.brief(), ", expected at least 2 experts");
  }
  ExpertsConfig& experts = *out.experts;
  experts.identities = in_range(config.at("zero_expert_num"), 0, kMostIdentities);
  experts.shortcut = true;
  experts.choice_bias = true;
  experts.routing.scale = positive_number(config.at("routed_scaling_factor"));
}

void parse_longcat(const Json& config, ModelConfig& out) {
  check_longcat_switches(config);
  config.at("q_lora_rank");
  parse_latent(config, out);
  LatentConfig& latent = *out.latent;
  check_longcat_heads(config, latent);
  const auto factor = [&](int64_t rank) {
    return std::sqrt(static_cast<double>(out.dim) / static_cast<double>(rank));
  };
  latent.q_factor = factor(latent.q_rank);
  latent.latent_factor = factor(latent.rank);
  parse_longcat_experts(config, out);
}

TensorRows longcat_attention() {
  return {{"model.layers.{pair}.input_layernorm.{i}", {attn_norm}},
          {"model.layers.{pair}.self_attn.{i}.q_a_proj", {q_down}},
          {"model.layers.{pair}.self_attn.{i}.q_a_layernorm", {q_down_norm}},
          {"model.layers.{pair}.self_attn.{i}.q_b_proj", {q}},
          {"model.layers.{pair}.self_attn.{i}.kv_a_proj_with_mqa", {latent, k_rope}},
          {"model.layers.{pair}.self_attn.{i}.kv_a_layernorm", {latent_norm}},
          {"model.layers.{pair}.self_attn.{i}.kv_b_proj", {k_up, v_up}, TensorLayout::by_head},
          {"model.layers.{pair}.self_attn.{i}.o_proj", {o}}};
}

TensorRows longcat_feed_forward() {
  return {{"model.layers.{pair}.post_attention_layernorm.{i}", {ffn_norm}},
          {"model.layers.{pair}.mlps.{i}.gate_proj", {gate}},
          {"model.layers.{pair}.mlps.{i}.up_proj", {up}},
          {"model.layers.{pair}.mlps.{i}.down_proj", {down}},
          {"model.layers.{pair}.mlp.router.classifier", {router}},
          {"model.layers.{pair}.mlp.router.e_score_correction_bias", {choice_bias}},
          {"model.layers.{pair}.mlp.experts.{e}.gate_proj", {expert_gate}},
          {"model.layers.{pair}.mlp.experts.{e}.up_proj", {expert_up}},
          {"model.layers.{pair}.mlp.experts.{e}.down_proj", {expert_down}}};
}

std::span<const TensorRow> longcat_tensors() {
  static const TensorRows rows = joined({{{"model.embed_tokens", {embedding}}},
                                         longcat_attention(),
                                         longcat_feed_forward(),
                                         ending()});
  return rows;
}

}  // namespace

Architecture longcat_flash() {
  return {.name = "LongcatFlashForCausalLM",
          .model_type = "longcat_flash",
          .summary = "LongCat Flash",
          .parse = parse_longcat,
          .tensors = longcat_tensors(),
          .activations = kSilu,
          .rope = {.theta = 1e7, .pairs = RopePairs::neighbours, .reads_mscale = true}};
}

}  // namespace fp8kv
