// Mistral 4: latent attention whose Q grows with its position, and experts with a softmax router.
#include <string>

#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

std::span<const TensorRow> mistral4_tensors() {
  static const TensorRows rows =
      joined({opening(),
              latent_attention(true),
              attention_out(),
              next_norm(),
              gated_mlp(),
              {{"model.layers.{}.mlp.gate", {router}}},
              experts_together(),
              {{"model.layers.{}.mlp.shared_experts.gate_proj", {shared_gate}},
               {"model.layers.{}.mlp.shared_experts.up_proj", {shared_up}},
               {"model.layers.{}.mlp.shared_experts.down_proj", {shared_down}}},
              ending()});
  return rows;
}

std::span<const TensorRow> mistral4_tensors_apart() {
  static const TensorRows rows = with_experts(mistral4_tensors(), experts_apart());
  return rows;
}

// The sizes of Q's two parts say what rotates. Transformers also reads it as a share of a head.
void check_part(const Json& holder, const LatentConfig& latent) {
  const auto said = holder.find("partial_rotary_factor");
  if (!said) return;
  const int64_t size = latent.nope_dim + latent.rope_dim;
  const auto part = static_cast<int64_t>(positive_number(*said) * static_cast<double>(size));
  if (part == latent.rope_dim) return;
  fail(said->where(), ": is ", said->brief(), ", which is ", part, " of the ", size,
       " elements of a head, expected ", latent.rope_dim, ", as many as qk_rope_head_dim");
}

// Transformers computes with a yarn in rope_parameters, and stops or rotates too much otherwise.
void check_mistral4_rope(const Json& text, const LatentConfig& latent) {
  if (const auto before = text.find("rope_scaling")) {
    fail(before->where(), ": is ", before->brief(),
         ", expected null: transformers reads rope_parameters here");
  }
  const Json rope = text.at("rope_parameters");
  const Json type = rope.has("rope_type") ? rope.at("rope_type") : rope.at("type");
  if (type.as_string() != "yarn") {
    fail(type.where(), ": is ", type.brief(),
         ", expected \"yarn\": no other rope of this architecture is supported");
  }
  rope.at("llama_4_scaling_beta");
  check_part(text, latent);
  check_part(rope, latent);
}

void parse_mistral4(const Json& text, ModelConfig& out) {
  text.at("q_lora_rank");
  parse_latent(text, out);
  set_latent_pairs(text, out);
  check_mistral4_rope(text, *out.latent);
  parse_experts(text, {{"n_routed_experts", "num_local_experts"}, "moe_intermediate_size"}, out);
  if (!out.experts) return;
  ExpertsConfig& experts = *out.experts;
  if (const auto groups = text.find("n_group"); groups && groups->as_int() != 1) {
    fail(groups->where(), ": is ", groups->brief(),
         ", expected 1: groups of experts by their two largest softmaxes are not supported");
  }
  parse_expert_groups(text, out);
  experts.routing.normalise = is_on(text, "norm_topk_prob");
  experts.routing.epsilon = 1e-20;
  experts.routing.scale = positive_or(text, "routed_scaling_factor", 1.0);
  const auto shared = text.find("n_shared_experts");
  experts.shared_hidden_dim =
      experts.hidden_dim * (shared ? in_range(*shared, kLargestDim / experts.hidden_dim) : 1);
}

}  // namespace

Architecture mistral4() {
  return {.name = "Mistral4ForCausalLM",
          .model_type = "mistral4",
          .summary = "Mistral Small 4",
          .parse = parse_mistral4,
          .tensors = mistral4_tensors(),
          .other_tensors = mistral4_tensors_apart(),
          .activations = kSilu,
          .rope = {.checks_part = true, .pairs = RopePairs::neighbours, .reads_mscale = true}};
}

}  // namespace fp8kv
