// LFM3: most layers are short convolutions between two gates. The others have attention of Qwen 3
// with a gate for each head, in most of them within a window. Norms are around all blocks.
#include "base/error.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/states/lfm2.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

void parse_lfm3(const Json& config, ModelConfig& out) {
  config.at("layer_types");
  check_same(config.find("norm_eps"), config.find("rms_norm_eps"));
  if (const auto base = config.find("rope_theta")) {
    fail(base->where(), ": is ", base->brief(),
         ", expected null: write the base of each type of layer in rope_parameters");
  }
  parse_convolutions(config, 7, out);
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.block.qk_norm = QkNorm::per_head;
  if (is_on(config, "use_sandwich_norm")) out.block.norm_place = NormPlace::around;
  if (is_on(config, "use_attention_gate")) {
    out.block.attention_gate = AttentionGate::sigmoid_of_heads;
  }
}

std::span<const TensorRow> lfm3_tensors() {
  static const TensorRows rows =
      joined({{{"model.embed_tokens", {embedding}}, {"model.layers.{}.operator_norm", {attn_norm}}},
              qkv(),
              qk_norms(),
              {{"model.layers.{}.self_attn.gate_proj", {attn_gate}}},
              attention_out(),
              lfm2_convolutions(),
              {{"model.layers.{}.post_operator_norm", {attn_post_norm}},
               {"model.layers.{}.ffn_norm", {ffn_norm}}},
              lfm2_mlp(),
              {{"model.layers.{}.post_ffn_norm", {ffn_post_norm}}},
              lfm2_ending()});
  return rows;
}

}  // namespace

Architecture lfm3() {
  return {.name = "Lfm3ForCausalLM",
          .model_type = "lfm3",
          .summary = "LFM3",
          .windows = true,
          .states = true,
          .parse = parse_lfm3,
          .tensors = lfm3_tensors(),
          .activations = kSilu,
          .norm_eps = "norm_eps",
          .tied = true,
          .context = 128000,
          .rope = {.theta = 1e6, .by_layer_type = true, .full_turning = 0.5}};
}

}  // namespace fp8kv
