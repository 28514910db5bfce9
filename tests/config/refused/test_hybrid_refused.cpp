// Values of config.json that Muse Glimmer, OLMo Hybrid, LFM3, Kimi Linear, Ling 3, MiMo and MPT do
// not compute, or that runtimes read differently, refused by key.
#include <string>

#include <doctest/doctest.h>

#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::refusal_of_family;

// The refusal of a Muse Glimmer with another member of its language model.
std::string muse_refusal(const std::string& key, const std::string& value) {
  constexpr const char* kGolden = "muse-glimmer";
  JsonWriter text;
  text.value(test::family_golden(kGolden).at("config").at("text_config"));
  return refusal_of_family(kGolden, "text_config", json_with_member(text.text(), key, value));
}

}  // namespace

TEST_CASE("Muse Glimmer: keys that transformers or vLLM takes for granted") {
  for (const char* key : {"use_qk_norm", "use_attn_output_gate", "normalize_tok_embeddings"}) {
    CHECK(muse_refusal(key, "false") == std::string("config.json: text_config.") + key +
                                            ": is false, expected true, which transformers takes "
                                            "for it");
  }
  CHECK(muse_refusal("scale_query_by", "3.0") ==
        "config.json: text_config.scale_query_by: is 3.0, but qk_scale_factor is 2.3: runtimes "
        "differ in which they go by");
  CHECK(muse_refusal("qk_scale_factor", "3.5") ==
        "config.json: text_config.qk_scale_factor: is 3.5, expected less than the root of 12, the "
        "head size");
  CHECK(muse_refusal("qk_scale_factor", "null") ==
        "config.json: text_config: the key 'qk_scale_factor' is null");
  CHECK(muse_refusal("rope_parameters", "null") ==
        "config.json: text_config: the key 'rope_parameters' is null");
}

TEST_CASE("Muse Glimmer: runtimes agree on which layers rotate") {
  CHECK(muse_refusal("layer_rope_theta", "[500.0, 500.0, 20.0, 0]") ==
        "config.json: text_config.layer_rope_theta[2]: is 20.0, expected 0 or 500, the base that "
        "runtimes take for all layers");
  CHECK(muse_refusal("layer_rope_theta", "[500.0, 500.0, 0, 500.0]") ==
        "config.json: text_config: layer 2 does not rotate by layer_rope_theta, and no_rope_layers "
        "says otherwise");
  CHECK(muse_refusal("layer_rope_theta", "[500.0]") ==
        "config.json: text_config.layer_rope_theta: is [500.0], expected an array of 4 numbers");
  CHECK(muse_refusal("layer_types",
                     R"(["full_attention", "sliding_attention", "sliding_attention",
                         "full_attention"])") ==
        "config.json: text_config: layer 0 rotates by layer_rope_theta, and layer_types says "
        "otherwise");
}

TEST_CASE("OLMo Hybrid: the config says whether anything rotates") {
  const std::string expected = "config.json: has no base under rope_parameters.rope_theta";
  CHECK(refusal_of_family("olmo-hybrid", "rope_parameters", "null") == expected);
  CHECK(refusal_of_family("olmo-hybrid", "rope_parameters", R"({"rope_type": "default"})") ==
        expected);
  CHECK(refusal_of_family("olmo-hybrid", "rope_scaling", R"({"rope_type": "default"})") ==
        "config.json: rope_scaling: is {\"rope_type\": \"default\"}, expected null beside "
        "rope_parameters");
  CHECK(refusal_of_family("olmo-hybrid", "head_dim", "12") ==
        "config.json: head_dim: is 12, expected 32 / 4, which vLLM takes whatever this key says");
  CHECK(refusal_of_family("olmo-hybrid", "layer_types", "null") ==
        "config.json: the key 'layer_types' is null");
}

TEST_CASE("LFM3: one key for each number") {
  CHECK(refusal_of_family("lfm3", "rms_norm_eps", "0.3") ==
        "config.json: norm_eps: is 0.02, but config.json: rms_norm_eps is 0.3");
  CHECK(refusal_of_family("lfm3", "rope_theta", "50.0") ==
        "config.json: rope_theta: is 50.0, expected null: write the base of each type of layer in "
        "rope_parameters");
  CHECK(refusal_of_family("lfm3", "layer_types", "null") ==
        "config.json: the key 'layer_types' is null");
}

TEST_CASE("Kimi Linear: lists that runtimes choose between agree") {
  const std::string types = R"(["linear_attention", "full_attention", "linear_attention",
                                "linear_attention"])";
  CHECK(refusal_of_family("kimi-linear", "layer_types", types) ==
        "config.json: linear_attn_config.full_attn_layers: lacks layer 2, contrary to "
        "layer_types: runtimes differ in which they go by");
  CHECK(refusal_of_family("kimi-linear", "mlp_layer_types",
                          R"(["dense", "sparse", "dense", "sparse"])") ==
        "config.json: first_k_dense_replace: is 1, contrary to mlp_layer_types at layer 2: "
        "runtimes differ in which they go by");
  CHECK(refusal_of_family("kimi-linear", "linear_head_dim", "8") ==
        "config.json: linear_attn_config.head_dim: is 6, but config.json: linear_head_dim is 8");
  const auto lists = [](const char* full, const char* kda) {
    return std::string(R"({"full_attn_layers": )") + full + R"(, "kda_layers": )" + kda +
           R"(, "head_dim": 6, "num_heads": 4, "short_conv_kernel_size": 4})";
  };
  CHECK(refusal_of_family("kimi-linear", "linear_attn_config", lists("[3]", "[1, 2]")) ==
        "config.json: linear_attn_config: has layer 4 in neither full_attn_layers nor kda_layers");
  CHECK(refusal_of_family("kimi-linear", "linear_attn_config", lists("[3]", "[1, 2, 3, 4]")) ==
        "config.json: linear_attn_config.kda_layers[2]: is 3, which is a layer of two lists");
}

TEST_CASE("Kimi Linear: what Kimi K3 has, and what only one runtime reads") {
  const auto refused = [](const char* key, const char* value) {
    return refusal_of_family("kimi-linear", key, value);
  };
  CHECK(refused("mla_use_nope", "false") ==
        "config.json: mla_use_nope: is false, expected true: latent attention does not rotate in "
        "this architecture");
  CHECK(refused("mla_use_output_gate", "true") ==
        "config.json: mla_use_output_gate: is true: a gate of latent attention is not supported");
  CHECK(refused("tie_word_embeddings", "true") ==
        "config.json: tie_word_embeddings: is true: an embedding in place of lm_head is not "
        "supported");
  for (const char* key : {"attn_res_block_size", "routed_expert_hidden_size"}) {
    CHECK(refused(key, "8") ==
          std::string("config.json: ") + key + ": is 8, expected null in this architecture");
  }
  CHECK(refused("moe_layer_freq", "2") ==
        "config.json: moe_layer_freq: is 2, expected 1: experts in some of the layers are not "
        "supported");
  CHECK(refusal_of_family("kimi-linear-seven", "use_grouped_topk", "false") ==
        "config.json: use_grouped_topk: is false, but num_expert_group is 4");
  for (const char* key : {"num_shared_experts", "routed_scaling_factor"}) {
    CHECK(refused(key, "null") == std::string("config.json: the key '") + key + "' is null");
  }
}

TEST_CASE("Ling 3: layers that runtimes take for different kinds") {
  CHECK(refusal_of_family("ling3", "layer_group_size", "3") ==
        "config.json: layer_group_size: is 3, of which 4 layers are no multiple: runtimes differ "
        "in what layer 3 is");
  CHECK(refusal_of_family("ling3-saved", "layer_group_size", "4") ==
        "config.json: layer_group_size: is 4, contrary to layer_types at layer 1: runtimes differ "
        "in which they go by");
  CHECK(refusal_of_family("ling3", "layer_group_size", "null") ==
        "config.json: the key 'layer_group_size' is null");
  CHECK(
      refusal_of_family("ling3", "mlp_layer_types", R"(["dense", "sparse", "dense", "sparse"])") ==
      "config.json: first_k_dense_replace: is 1, contrary to mlp_layer_types at layer 2: "
      "runtimes differ in which they go by");
  CHECK(refusal_of_family("ling3", "first_k_dense_replace", "null") ==
        "config.json: the key 'first_k_dense_replace' is null");
}

TEST_CASE("Ling 3: what runtimes compute whatever the config says") {
  const auto refused = [](const char* key, const char* value) {
    return refusal_of_family("ling3", key, value);
  };
  CHECK(refused("tie_word_embeddings", "true") ==
        "config.json: tie_word_embeddings: is true: an embedding in place of lm_head is not "
        "supported");
  CHECK(refused("use_mla_nope", "true") ==
        "config.json: use_mla_nope: is true: latent attention that does not rotate is not "
        "supported");
  for (const char* key : {"use_bias", "use_qkv_bias"}) {
    CHECK(refused(key, "true") ==
          std::string("config.json: ") + key + ": is true: biases of products is not supported");
  }
  for (const char* key : {"no_kda_lora", "rope_interleave", "linear_silu"}) {
    CHECK(refused(key, "false") ==
          std::string("config.json: ") + key + ": is false, expected true in this architecture");
  }
  CHECK(refused("num_kv_heads_for_linear_attn", "2") ==
        "config.json: num_kv_heads_for_linear_attn: is 2, expected 0: K has as many heads as Q");
  CHECK(refused("moe_layer_freq", "2") ==
        "config.json: moe_layer_freq: is 2, expected 1: layers behind the dense ones all have "
        "experts");
  CHECK(refused("group_norm_size", "4") ==
        "config.json: group_norm_size: is 4, expected 1: each head's output is normed by itself");
  CHECK(refused("expert_swiglu_limit_list", "[0, 0, 0, 4]") ==
        "config.json: expert_swiglu_limit_list[3]: is 4, expected 0: transformers clamps no SwiGLU "
        "of this architecture");
  CHECK(refused("rotary_dim", "4") ==
        "config.json: rotary_dim: is 4, expected 6: runtimes rotate qk_rope_head_dim elements "
        "whatever this says");
  CHECK(refused("partial_rotary_factor", "0.25") ==
        "config.json: partial_rotary_factor: is 0.25, which times head_dim is not 6: runtimes "
        "rotate qk_rope_head_dim elements whatever this says");
  CHECK(refusal_of_family(
            "ling3-free-decay", "rope_parameters",
            R"({"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 1.0})") ==
        "config.json: rope_parameters.partial_rotary_factor: is 1.0, which times head_dim is not "
        "6: runtimes rotate qk_rope_head_dim elements whatever this says");
  CHECK(refused("moe_shared_expert_intermediate_size", "48") ==
        "config.json: moe_shared_expert_intermediate_size: is 48, expected 24: transformers "
        "makes a shared expert as wide as the others");
  CHECK(refused("norm_topk_prob", "false") ==
        "config.json: norm_topk_prob: is false, expected true: vLLM divides the weights of "
        "experts by their sum whatever this says");
  CHECK(refused("moe_router_enable_expert_bias", "false") ==
        "config.json: moe_router_enable_expert_bias: is false, expected true: transformers adds "
        "the bias of the choice");
  for (const char* key : {"n_group", "topk_group", "routed_scaling_factor", "num_shared_experts"}) {
    CHECK(refused(key, "null").find("' is null") != std::string::npos);
  }
  CHECK(refusal_of_family("ling3-saved", "moe_renormalize", "null") ==
        "config.json: the key 'moe_renormalize' is null, which transformers takes for false");
  CHECK(refused("moe_renormalize", "false") ==
        "config.json: norm_topk_prob: is true, but config.json: moe_renormalize is false");
}

TEST_CASE("Ling 3: a bound of decays is said, and below 0") {
  for (const char* key : {"kda_safe_gate", "kda_lower_bound"}) {
    CHECK(refusal_of_family("ling3", key, "null") ==
          std::string("config.json: the key '") + key + "' is null");
  }
  for (const char* least : {"0", "2.0", "-20000"}) {
    CHECK(refusal_of_family("ling3", "kda_lower_bound", least) ==
          std::string("config.json: kda_lower_bound: is ") + least +
              ", expected a number below 0, and above -10,000");
  }
}

TEST_CASE("MiMo: Q, K and V have biases whatever the config says") {
  CHECK(refusal_of_family("mimo", "attention_bias", "false") ==
        "config.json: attention_bias: is false, expected true: runtimes take biases of Q, K and V "
        "for MiMo");
}

TEST_CASE("MPT: keys that transformers or the model's own code ignores") {
  const auto refused = [](const char* key, const char* value) {
    return refusal_of_family("mpt", key, value);
  };
  CHECK(refused("expansion_ratio", "3") ==
        "config.json: expansion_ratio: is 3, expected 4, which transformers takes whatever this "
        "key says");
  CHECK(refused("no_bias", "false") ==
        "config.json: no_bias: is false, expected true: transformers has no biases here");
  CHECK(refused("logit_scale", "0.5") ==
        "config.json: logit_scale: is 0.5, expected null: transformers ignores it");
  CHECK(refused("norm_type", R"("rmsnorm")") ==
        "config.json: norm_type: is \"rmsnorm\", expected 'low_precision_layernorm': no other norm "
        "of "
        "this architecture is supported");
  CHECK(refused("attn_config", R"({"alibi": false})") ==
        "config.json: attn_config.alibi: is false, expected true: positions have no other form in "
        "this architecture");
  CHECK(refused("attn_config", R"({"alibi_bias_max": 16})") ==
        "config.json: attn_config.alibi_bias_max: is 16, expected 8, which transformers takes "
        "whatever this key says");
  CHECK(refused("attn_config", R"({"clip_qkv": 6})") ==
        "config.json: attn_config.clip_qkv: is 6, expected null: clipping of Q, K and V is not "
        "supported");
}

}  // namespace fp8kv
