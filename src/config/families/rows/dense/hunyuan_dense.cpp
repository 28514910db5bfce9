// HunYuan, dense: Llama with norms of Q and K after their rotation.
#include "base/error.h"
#include "config/families/rows/family_rows.h"
#include "config/families/rows/hunyuan.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

void parse_hunyuan_dense(const Json& config, ModelConfig& out) {
  parse_hunyuan_attention(config, out);
  // Published dense configs count one expert.
  if (const auto experts = config.find("num_experts")) in_range(*experts, 0, 1);
}

std::span<const TensorRow> hunyuan_dense_tensors() {
  static const TensorRows rows = joined(
      {opening(), qkv(), hunyuan_norms(), attention_out(), next_norm(), gated_mlp(), ending()});
  return rows;
}

}  // namespace

void parse_hunyuan_attention(const Json& config, ModelConfig& out) {
  out.qkv_bias = out.o_bias = config.get_bool("attention_bias", false);
  out.block.qk_norm = QkNorm::per_head;
  out.qk_norm_rotated = true;
  for (const char* key : {"use_qk_norm", "use_rotary_pos_emb"}) {
    if (is_on(config, key)) continue;
    fail(config.at(key).where(),
         ": is false, expected true: a HunYuan without it is not supported");
  }
  refuse_if_set(config, "mlp_bias", "a bias of the feed-forward part");
  refuse_if_set(config, "position_embedding_xdrope", "rotation by several positions");
  refuse_if_set(config, "use_cla", "reading the cache of another layer");
  refuse_if_set(config, "use_mla", "latent attention");
  // vLLM reads this key if head_dim is missing.
  const auto size = config.find("attention_head_dim");
  if (size && size->as_int() != out.head_dim()) {
    fail(size->where(), ": is ", size->brief(), ", expected ", out.head_dim(),
         " like head_dim: give both keys the size of a head");
  }
  const auto norm = config.find("norm_type");
  if (norm && norm->as_string() != "rms") {
    fail(norm->where(), ": is ", norm->brief(), ", expected \"rms\": no other norm is supported");
  }
}

TensorRows hunyuan_norms() {
  return {{"model.layers.{}.self_attn.query_layernorm", {TensorRole::q_norm}},
          {"model.layers.{}.self_attn.key_layernorm", {TensorRole::k_norm}}};
}

Architecture hunyuan_dense() {
  return {.name = "HunYuanDenseV1ForCausalLM",
          .model_type = "hunyuan_v1_dense",
          .summary = "HunYuan 0.5B to 7B, dense",
          .parse = parse_hunyuan_dense,
          .tensors = hunyuan_dense_tensors(),
          .activations = kSilu,
          .rope = {.reads_alpha = true}};
}

}  // namespace fp8kv
