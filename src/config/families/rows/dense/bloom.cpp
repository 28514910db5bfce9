// BLOOM: ALiBi, layer norms, one of them for the embedding, and a feed-forward part without a gate.
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr NamedActivation kBloomActivations[] = {{"gelu_new", Activation::gelu_tanh}};

void parse_bloom(const Json& config, ModelConfig& out) {
  check_same(config.find("hidden_size"), config.find("n_embed"));
  refuse_if_set(config, "apply_residual_connection_post_layernorm",
                "a stream that is normed before it joins a block's output");
  config.find("slow_but_exact");  // the same numbers, summed in other pieces
  if (const auto context = config.find("seq_length")) {
    out.max_seq_len = in_range(*context, kLongestContext);
    out.context_key = "seq_length";
  }
  out.qkv_bias = out.o_bias = out.mlp_bias = out.embed_norm = true;
  out.block.norm = NormKind::layer;
  out.block.norm_bias = true;
  out.block.gated = false;
  out.block.score_bias = ScoreBias::alibi;
}

std::span<const TensorRow> bloom_tensors() {
  static const TensorRows rows = {
      {"model.word_embeddings", {embedding}},
      {"model.word_embeddings_layernorm", {embed_norm}},
      {"model.h.{}.input_layernorm", {attn_norm}},
      {"model.h.{}.self_attention.query_key_value", {q, k, v}, TensorLayout::by_kv_head},
      {"model.h.{}.self_attention.dense", {o}},
      {"model.h.{}.post_attention_layernorm", {ffn_norm}},
      {"model.h.{}.mlp.dense_h_to_4h", {up}},
      {"model.h.{}.mlp.dense_4h_to_h", {down}},
      {"model.ln_f", {norm}},
      {"lm_head", {lm_head}},
  };
  return rows;
}

}  // namespace

Architecture bloom() {
  return {.name = "BloomForCausalLM",
          .model_type = "bloom",
          .summary = "BLOOM",
          .parse = parse_bloom,
          .tensors = bloom_tensors(),
          .activations = kBloomActivations,
          .norm_eps = "layer_norm_epsilon",
          .tied = true,
          .context = 2048,
          .hidden_dims = 4,
          .rope = {.none = true},
          .model_prefix = "transformer."};
}

}  // namespace fp8kv
