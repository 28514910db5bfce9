// MPT: ALiBi, layer norms without biases, and a feed-forward part without a gate.
#include "base/error.h"
#include "config/families/rows/family_rows.h"
#include "config/families/tensor_blocks.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

using enum TensorRole;

constexpr NamedActivation kErfGelu[] = {{"gelu", Activation::gelu_erf}};

// Throws unless the member is absent or null, or is the number that transformers takes for it.
void check_is(const Json& holder, const char* key, double expected) {
  const auto said = holder.find(key);
  if (!said || said->as_double() == expected) return;
  fail(said->where(), ": is ", said->brief(), ", expected ", expected,
       ", which transformers takes whatever this key says");
}

// Transformers reads few of these keys, and the models' own code reads all.
void parse_attention(const Json& attention, ModelConfig& out) {
  check_says(attention, "attn_type", "multihead_attention", "attention");
  if (const auto clip = attention.find("clip_qkv")) {
    fail(clip->where(), ": is ", clip->brief(),
         ", expected null: clipping of Q, K and V is not supported");
  }
  refuse_if_set(attention, "prefix_lm", "a prefix whose tokens all see each other");
  refuse_if_set(attention, "qk_ln", "a norm of Q and K in this architecture");
  refuse_if_set(attention, "attn_uses_sequence_id", "attention within parts of a sequence");
  check_is(attention, "alibi_bias_max", 8);
  if (!is_on(attention, "alibi")) {
    fail(attention.at("alibi").where(), ": is false, expected true: positions have no other form ",
         "in this architecture");
  }
  if (const auto scale = attention.find("softmax_scale")) {
    out.block.attention_scale = positive_number(*scale);
  }
  for (const char* key : {"attn_impl", "attn_pdrop"}) attention.find(key);
}

void parse_mpt(const Json& config, ModelConfig& out) {
  if (const auto attention = config.find("attn_config")) parse_attention(*attention, out);
  check_is(config, "expansion_ratio", 4);
  check_says(config, "norm_type", "low_precision_layernorm", "norm");
  if (!is_on(config, "no_bias")) {
    fail(config.at("no_bias").where(),
         ": is false, expected true: transformers has no biases here");
  }
  if (const auto scale = config.find("logit_scale")) {
    fail(scale->where(), ": is ", scale->brief(), ", expected null: transformers ignores it");
  }
  for (const char* key : {"embedding_fraction", "learned_pos_emb"}) config.find(key);
  if (const auto context = config.find("max_seq_len")) {
    out.max_seq_len = in_range(*context, kLongestContext);
    out.context_key = "max_seq_len";
  }
  BlockConfig& block = out.block;
  block.norm = NormKind::layer;
  block.gated = false;
  block.score_bias = ScoreBias::alibi;
}

std::span<const TensorRow> mpt_tensors() {
  static const TensorRows rows = {
      {"model.wte", {embedding}},
      {"model.blocks.{}.norm_1", {attn_norm}},
      {"model.blocks.{}.attn.Wqkv", {q, k, v}},
      {"model.blocks.{}.attn.out_proj", {o}},
      {"model.blocks.{}.norm_2", {ffn_norm}},
      {"model.blocks.{}.ffn.up_proj", {up}},
      {"model.blocks.{}.ffn.down_proj", {down}},
      {"model.norm_f", {norm}},
      {"lm_head", {lm_head}},
  };
  return rows;
}

// Published files and transformers differ in the name of the class.
Architecture mpt_by(const char* name) {
  return {.name = name,
          .model_type = "mpt",
          .summary = "MPT",
          .parse = parse_mpt,
          .tensors = mpt_tensors(),
          .activations = kErfGelu,
          .norm_eps = "layer_norm_epsilon",
          .tied = true,
          .context = 2048,
          .hidden_dims = 4,
          .rope = {.none = true},
          .model_prefix = "transformer."};
}

}  // namespace

Architecture mpt() {
  return mpt_by("MptForCausalLM");
}

Architecture mpt_published() {
  return mpt_by("MPTForCausalLM");
}

}  // namespace fp8kv
