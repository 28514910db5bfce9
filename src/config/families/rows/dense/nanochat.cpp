// nanochat: norms without weights, also of the embedding and of rotated Q and K. Pairs turn
// backwards.
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr NamedActivation kReluSquared[] = {{"relu2", Activation::relu_squared}};

void parse_nanochat(const Json& config, ModelConfig& out) {
  constexpr const char* kCap = "final_logit_softcapping";
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.bare_norms = out.embed_norm = true;
  out.block.gated = false;
  out.block.qk_norm = QkNorm::plain;
  out.qk_norm_rotated = true;
  out.block.logit_cap = mentions(config, kCap) ? positive_or(config, kCap, 0.0) : 15.0;
  for (RopeConfig& rope : out.ropes) rope.backwards = true;
}

std::span<const TensorRow> nanochat_tensors() {
  static const TensorRows rows = joined({{{"model.embed_tokens", {embedding}}},
                                         qkv(),
                                         attention_out(),
                                         {{"model.layers.{}.mlp.fc1", {up}},
                                          {"model.layers.{}.mlp.fc2", {down}},
                                          {"lm_head", {lm_head}}}});
  return rows;
}

}  // namespace

Architecture nanochat() {
  return {.name = "NanoChatForCausalLM",
          .model_type = "nanochat",
          .summary = "nanochat",
          .parse = parse_nanochat,
          .tensors = nanochat_tensors(),
          .activations = kReluSquared,
          .context = 2048};
}

}  // namespace fp8kv
