// A.X K1: DeepSeek V3 with a norm of the experts' output. Published files have no choice bias, and
// that norm in dense layers too, where nothing uses it.
#include "base/error.h"
#include "config/families/experts_config.h"
#include "config/families/groups/latent_architectures.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"

namespace fp8kv {
namespace {

using enum TensorRole;

// Sets the router of DeepSeek V3. transformers never reads topk_method.
void parse_axk1_router(const Json& config, ModelConfig& out) {
  check_router_says(config, "scoring_func", "sigmoid");
  const auto method = config.find("topk_method");
  if (!out.experts) return;
  for (const char* key : {"n_group", "topk_group"}) config.at(key);
  parse_sigmoid_router(config, out);
  const Routing& routing = out.experts->routing;
  if (!method || method->as_string() == "noaux_tc" || routing.groups == routing.groups_kept) return;
  fail(method->where(), ": is ", method->brief(),
       ", expected \"noaux_tc\": otherwise vLLM ranks groups of experts by their largest score, ",
       "and transformers by the two largest");
}

void parse_axk1(const Json& config, ModelConfig& out) {
  check_first_dense(config, out);
  config.at("q_lora_rank");
  parse_latent(config, out);
  set_latent_pairs(config, out);
  parse_latent_experts(config, out);
  parse_axk1_router(config, out);
  if (!out.experts) config.at("n_routed_experts");
  if (out.experts) out.experts->post_norm = true;
}

std::span<const TensorRow> axk1_tensors() {
  static const TensorRows rows = [] {
    TensorRows made(latent_q_tensors().begin(), latent_q_tensors().end());
    for (TensorRow& row : made) row.optional = row.roles.front() == choice_bias;
    made.push_back({"model.layers.{}.post_mlp_layernorm", {ffn_post_norm}});
    return made;
  }();
  return rows;
}

}  // namespace

Architecture axk1() {
  return {.name = "AXK1ForCausalLM",
          .model_type = "axk1",
          .summary = "A.X K1",
          .parse = parse_axk1,
          .tensors = axk1_tensors(),
          .activations = kSilu,
          .rope = {.pairs = RopePairs::neighbours, .reads_mscale = true}};
}

}  // namespace fp8kv
