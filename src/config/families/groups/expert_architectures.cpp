#include "config/families/groups/expert_architectures.h"

#include <cmath>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/tensor_blocks.h"
#include "config/families/tensor_table.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Throws if a window is on, since versions of transformers differ in which layers get it.
void check_no_window(const Json& config) {
  const auto used = config.find("use_sliding_window");
  if (!used || !used->as_bool()) return;
  fail(used->where(), ": is true: a sliding window is not supported in this architecture");
}

// Qwen: the weights of the chosen experts need not sum to 1 unless the config says so.
void parse_qwen_experts(const Json& config, ModelConfig& out) {
  parse_experts(config, {{"num_experts", "num_local_experts"}, "moe_intermediate_size"}, out);
  check_no_window(config);
  if (out.experts) out.experts->routing.normalise = config.get_bool("norm_topk_prob", false);
}

// The multiplier under `key`, or 1 if the key is missing.
double multiplier(const Json& config, const char* key) {
  const auto found = config.find(key);
  const double value = found ? found->as_double() : 1.0;
  if (!(std::abs(value) > 0) || !std::isfinite(value)) {
    fail(found->where(), ": is ", found->brief(), ", expected a finite number but 0");
  }
  return value;
}

}  // namespace

void parse_glm4_moe(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", false);
  if (config.get_bool("use_qk_norm", false)) out.block.qk_norm = QkNorm::per_head;
  check_router_says(config, "scoring_func", "sigmoid");
  parse_glm4_experts(config, out);
}

void parse_glm4_experts(const Json& config, ModelConfig& out) {
  parse_experts(config, {{"n_routed_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) config.at("n_routed_experts");
  if (!out.experts) return;
  parse_sigmoid_router(config, out);
  ExpertsConfig& experts = *out.experts;
  experts.routing.scale = positive_or(config, "routed_scaling_factor", 1.0);
  const auto shared = config.find("n_shared_experts");
  experts.shared_hidden_dim =
      experts.hidden_dim * (shared ? in_range(*shared, 0, kLargestDim / experts.hidden_dim) : 1);
}

void parse_gpt_oss(const Json& config, ModelConfig& out) {
  out.qkv_bias = is_on(config, "attention_bias");
  out.o_bias = out.qkv_bias;
  out.block.sinks = true;
  // These keys must be present: transformers' defaults would be a yarn rope and a window of 128.
  if (!config.has("rope_scaling")) config.at("rope_parameters");
  if (!config.has("layer_types")) config.at("sliding_window");
  parse_experts(config, {{"num_local_experts", "num_experts"}, "intermediate_size"}, out);
  if (!out.experts) config.at("num_local_experts");
  if (!out.experts) return;
  out.experts->routing.score = RouterScore::softmax_of_chosen;
  out.experts->bias = true;
  const ClampedSwiglu swiglu{
      .alpha = static_cast<float>(positive_or(config, "swiglu_alpha", 1.702)),
      .limit = static_cast<float>(positive_or(config, "swiglu_limit", 7.0))};
  out.swiglus.assign(out.layers.size(), {.routed = swiglu});
}

void parse_granite_moe(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", false);
  out.o_bias = out.qkv_bias;
  out.block.embed_multiplier = multiplier(config, "embedding_multiplier");
  out.block.residual_multiplier = multiplier(config, "residual_multiplier");
  out.block.attention_scale = multiplier(config, "attention_multiplier");
  out.block.logit_multiplier = 1 / multiplier(config, "logits_scaling");
  parse_experts(config, {{"num_local_experts", "num_experts"}, "intermediate_size"}, out);
  if (!out.experts) config.at("num_local_experts");
  if (out.experts) out.experts->routing.score = RouterScore::softmax_of_chosen;
}

// The first configs call the rotated part of a head rotary_dim.
void parse_minimax_m2(const Json& config, ModelConfig& out) {
  if (const auto rotated = config.find("rotary_dim")) {
    const int64_t size = in_range(*rotated, 2, out.head_dim());
    if (size % 2 != 0) fail(rotated->where(), ": is ", size, ", expected an even number");
    out.ropes[0].rotary_dim = size == out.head_dim() ? 0 : size;
  }
  for (const char* key : {"use_qk_norm", "use_routing_bias"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(), ": is false: a model without it is not supported");
  }
  if (const auto shared = config.find("shared_intermediate_size");
      shared && shared->as_int() != 0) {
    fail(shared->where(), ": is ", shared->brief(), ": a shared expert is not supported here");
  }
  check_router_says(config, "scoring_func", "sigmoid");
  check_router_says(config, "qk_norm_type", "per_layer");
  out.block.qk_norm = QkNorm::whole;
  parse_experts(config, {{"num_local_experts", "num_experts"}, "intermediate_size"}, out);
  if (!out.experts) config.at("num_local_experts");
  if (!out.experts) return;
  out.experts->routing.score = RouterScore::sigmoid;
  out.experts->routing.normalise = true;
  out.experts->choice_bias = true;
}

void parse_mixtral(const Json& config, ModelConfig& out) {
  parse_experts(config, {{"num_local_experts", "num_experts"}, "intermediate_size"}, out);
  if (!out.experts) config.at("num_local_experts");
  if (out.experts) out.experts->routing.normalise = true;
}

void parse_olmoe(const Json& config, ModelConfig& out) {
  if (const auto clip = config.find("clip_qkv")) {
    fail(clip->where(), ": is ", clip->brief(), ": clipping of Q, K and V is not supported");
  }
  out.qkv_bias = config.get_bool("attention_bias", false);
  out.o_bias = out.qkv_bias;
  out.block.qk_norm = QkNorm::whole;
  parse_experts(config, {{"num_experts", "num_local_experts"}, "intermediate_size"}, out);
  if (!out.experts) config.at("num_experts");
  if (out.experts) out.experts->routing.normalise = config.get_bool("norm_topk_prob", false);
}

void parse_qwen2_moe(const Json& config, ModelConfig& out) {
  out.qkv_bias = is_on(config, "qkv_bias");
  parse_qwen_experts(config, out);
  if (!out.experts) return;
  out.experts->shared_hidden_dim =
      in_range(config.at("shared_expert_intermediate_size"), kLargestDim);
  out.experts->shared_gated = true;
}

void parse_qwen3_moe(const Json& config, ModelConfig& out) {
  out.qkv_bias = config.get_bool("attention_bias", false);
  out.o_bias = out.qkv_bias;
  out.block.qk_norm = QkNorm::per_head;
  parse_qwen_experts(config, out);
}

std::span<const TensorRow> glm4_moe_tensors() {
  // Layers without experts are like Llama's.
  static const TensorRows rows = joined({opening(), qkv(), qk_norms(), attention_out(), next_norm(),
                                         gated_mlp(), deepseek_experts(), ending()});
  return rows;
}

std::span<const TensorRow> gpt_oss_tensors() {
  // One tensor holds all experts of a layer, as columns, with gate and up in turn.
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              {{.name = "model.layers.{}.self_attn.sinks", .roles = {sinks}, .bare = true}},
              attention_out(),
              next_norm(),
              {{"model.layers.{}.mlp.router", {router}},
               {.name = "model.layers.{}.mlp.experts.gate_up_proj",
                .roles = {expert_gate, expert_up},
                .layout = TensorLayout::columns_in_turn,
                .bare = true},
               {.name = "model.layers.{}.mlp.experts.down_proj",
                .roles = {expert_down},
                .layout = TensorLayout::transposed,
                .bare = true}},
              ending()});
  return rows;
}

std::span<const TensorRow> gpt_oss_tensors_apart() {
  static const TensorRows rows = with_experts(gpt_oss_tensors(), experts_apart());
  return rows;
}

std::span<const TensorRow> glm4_moe_tensors_together() {
  static const TensorRows rows = with_experts(glm4_moe_tensors(), experts_together());
  return rows;
}

std::span<const TensorRow> minimax_m2_tensors() {
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              qk_norms(),
              attention_out(),
              next_norm(),
              {{"model.layers.{}.block_sparse_moe.gate", {router}},
               {"model.layers.{}.block_sparse_moe.e_score_correction_bias", {choice_bias}},
               {"model.layers.{}.block_sparse_moe.experts.{e}.w1", {expert_gate}},
               {"model.layers.{}.block_sparse_moe.experts.{e}.w3", {expert_up}},
               {"model.layers.{}.block_sparse_moe.experts.{e}.w2", {expert_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> granite_moe_tensors() {
  // One tensor holds all experts of a layer, with gate first, then up.
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              attention_out(),
              next_norm(),
              {{"model.layers.{}.block_sparse_moe.router.layer", {router}},
               {"model.layers.{}.block_sparse_moe.input_linear", {expert_gate, expert_up}},
               {"model.layers.{}.block_sparse_moe.output_linear", {expert_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> granite_moe_tensors_apart() {
  static const TensorRows rows = with_experts(granite_moe_tensors(), granite_experts_apart());
  return rows;
}

std::span<const TensorRow> mixtral_tensors() {
  // Like Mistral's, except for the experts.
  static const TensorRows rows =
      joined({opening(), qkv(), attention_out(), next_norm(), mixtral_experts(), ending()});
  return rows;
}

std::span<const TensorRow> qwen_moe_tensors() {
  // Layers without experts are like Llama's.
  static const TensorRows rows =
      joined({opening(),
              qkv(),
              qk_norms(),
              attention_out(),
              next_norm(),
              gated_mlp(),
              {{"model.layers.{}.mlp.gate", {router}}},
              experts_apart(),
              {{"model.layers.{}.mlp.shared_expert.gate_proj", {shared_gate}},
               {"model.layers.{}.mlp.shared_expert.up_proj", {shared_up}},
               {"model.layers.{}.mlp.shared_expert.down_proj", {shared_down}},
               {"model.layers.{}.mlp.shared_expert_gate", {shared_router}}},
              ending()});
  return rows;
}

std::span<const TensorRow> qwen_moe_tensors_together() {
  static const TensorRows rows = with_experts(qwen_moe_tensors(), experts_together());
  return rows;
}

}  // namespace fp8kv
