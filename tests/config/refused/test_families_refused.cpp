// Values of config.json that families of src/config/families/rows do not compute, refused by key.
#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::config_with;
using test::error_of_config;
using test::family_with;
using test::llama_with;
using test::parse_config;
using test::refusal_of_family;

// A rope of Mistral 4 with other members.
std::string mistral4_rope(const std::string& members) {
  return R"({"rope_theta": 30.0, "factor": 4.0, "original_max_position_embeddings": 16, )" +
         members + "}";
}

}  // namespace

TEST_CASE("families: a Mistral 4 needs a yarn in rope_parameters, and experts without groups") {
  CHECK(refusal_of_family("mistral4", "rope_parameters", "null") ==
        "config.json: the key 'rope_parameters' is null");
  CHECK(
      refusal_of_family("mistral4", "rope_parameters",
                        mistral4_rope(R"("rope_type": "linear", "llama_4_scaling_beta": 0.1)")) ==
      "config.json: rope_parameters.rope_type: is \"linear\", expected \"yarn\": no other rope of "
      "this architecture is supported");
  CHECK(refusal_of_family("mistral4", "rope_parameters", mistral4_rope(R"("rope_type": "yarn")")) ==
        "config.json: rope_parameters: the key 'llama_4_scaling_beta' is missing");
  CHECK(refusal_of_family("mistral4", "rope_parameters",
                          mistral4_rope(R"("rope_type": "yarn", "llama_4_scaling_beta": 0.1,
                                 "partial_rotary_factor": 0.5)")) ==
        "config.json: rope_parameters.partial_rotary_factor: is 0.5, which is 8 of the 16 elements "
        "of a head, expected 6, as many as qk_rope_head_dim");
  CHECK(refusal_of_family("mistral4", "n_group", "4") ==
        "config.json: n_group: is 4, expected 1: groups of experts by their two largest softmaxes "
        "are not supported");
  CHECK(refusal_of_family("mistral4", "rope_scaling", R"({"factor": 4.0})") ==
        "config.json: rope_scaling: is {\"factor\": 4.0}, expected null: transformers reads "
        "rope_parameters here");
}

TEST_CASE("families: multipliers of a MiniCPM 3 have to be numbers") {
  CHECK(refusal_of_family("minicpm3", "scale_depth", "null") ==
        "config.json: the key 'scale_depth' is null");
  CHECK(refusal_of_family("minicpm3", "dim_model_base", "0") ==
        "config.json: dim_model_base: is 0, expected a positive number");
}

TEST_CASE("families: an A.X K1 needs one list of dense layers, a rank of Q and a known router") {
  CHECK(refusal_of_family("axk1", "first_k_dense_replace", "null") ==
        "config.json: the key 'first_k_dense_replace' is null");
  CHECK(refusal_of_family("axk1-seven", "first_k_dense_replace", "1") ==
        "config.json: first_k_dense_replace: is 1, contrary to mlp_layer_types at layer 2: "
        "runtimes differ in which they go by");
  CHECK(refusal_of_family("axk1-seven", "first_k_dense_replace", "2") ==
        "config.json: first_k_dense_replace: is 2, contrary to mlp_layer_types at layer 1: "
        "runtimes differ in which they go by");
  CHECK(refusal_of_family("axk1", "q_lora_rank", "null") ==
        "config.json: the key 'q_lora_rank' is null");
  CHECK(refusal_of_family("axk1", "n_routed_experts", "null") ==
        "config.json: the key 'n_routed_experts' is null");
  CHECK(refusal_of_family("axk1", "moe_layer_freq", "2") ==
        "config.json: moe_layer_freq: is 2, expected 1: experts in some of the layers are not "
        "supported");
  CHECK(refusal_of_family("axk1", "scoring_func", R"("softmax")") ==
        "config.json: scoring_func: is \"softmax\", expected 'sigmoid': no other router of this "
        "architecture is supported");
  CHECK(refusal_of_family("axk1", "topk_method", R"("greedy")") ==
        "config.json: topk_method: is \"greedy\", expected \"noaux_tc\": otherwise vLLM ranks "
        "groups of experts by their largest score, and transformers by the two largest");
}

TEST_CASE("families: routers of Sarvam are those of DeepSeek V3") {
  for (const char* golden : {"sarvam-moe", "sarvam-mla"}) {
    CHECK(
        refusal_of_family(golden, "score_function", "\"softmax\"") ==
        "config.json: score_function: is \"softmax\", expected 'sigmoid': no other router of this "
        "architecture is supported");
    CHECK(refusal_of_family(golden, "moe_router_enable_expert_bias", "false") ==
          "config.json: moe_router_enable_expert_bias: is false, expected true: transformers adds "
          "the bias of the choice");
    CHECK(refusal_of_family(golden, "n_routed_experts", "4") ==
          "config.json: n_routed_experts: is 4, but config.json: num_experts is 6");
  }
  CHECK(refusal_of_family("sarvam-moe", "attention_bias", "true") ==
        "config.json: attention_bias: is true, but config.json: use_qkv_bias is false");
  CHECK(refusal_of_family("sarvam-moe", "head_dim", "null") ==
        "config.json: the key 'head_dim' is null");
}

TEST_CASE("families: a Command A with experts needs the types of its layers") {
  CHECK(refusal_of_family("cohere2-moe", "layer_types", "null") ==
        "config.json: the key 'layer_types' is null");
  CHECK(refusal_of_family("cohere2-moe", "rope_scaling", R"({"type": "linear", "factor": 2.0})") ==
        "config.json: rope_scaling: is {\"type\": \"linear\", \"factor\": 2.0}, expected null: "
        "transformers ignores it here. Write rope_parameters");
  CHECK(
      refusal_of_family("cohere2-moe", "expert_selection_fn", "\"topk\"") ==
      "config.json: expert_selection_fn: is \"topk\", expected 'sigmoid': no other router of this "
      "architecture is supported");
  CHECK(refusal_of_family("cohere2-moe", "shared_expert_combination_strategy", "\"max\"") ==
        "config.json: shared_expert_combination_strategy: is \"max\", expected 'sum': no other "
        "router of this architecture is supported");
  CHECK(refusal_of_family("cohere2-moe", "use_qk_norm", "true") ==
        "config.json: use_qk_norm: is true: a norm of Q and K in this architecture is not "
        "supported");
}

TEST_CASE("families: an LFM2 has convolutions and attention, of one width") {
  CHECK(
      refusal_of_family("lfm2-new-keys", "layer_types", R"(["conv", "full_attention", "mamba"])") ==
      "config.json: layer_types[2]: is 'mamba', expected 'conv' or 'full_attention'");
  CHECK(refusal_of_family("lfm2", "conv_dim", "64") ==
        "config.json: conv_dim: is 64, expected 32 like in the key that counts");
  CHECK(refusal_of_family("lfm2", "num_heads", "8") ==
        "config.json: num_heads: is 8, expected 4 like in the key that counts");
  CHECK(refusal_of_family("lfm2", "theta", "50.0") ==
        "config.json: theta: is 50.0, expected 10000 like in the key that counts");
  CHECK(refusal_of_family("lfm2", "use_pos_enc", "false")
            .starts_with("config.json: use_pos_enc: is false"));
  CHECK(refusal_of_family("lfm2", "conv_L_cache", "9") ==
        "config.json: conv_L_cache: is 9, expected 1 to 8");
  CHECK(refusal_of_family("lfm2-moe", "layer_types", "null") ==
        "config.json: the key 'layer_types' is null");
}

TEST_CASE("families: an Apertus says its rope, and has norms of Q and K") {
  CHECK(refusal_of_family("apertus", "rope_scaling", "null") ==
        "config.json: the key 'rope_parameters' is missing");
  CHECK(refusal_of_family("apertus", "qk_norm", "false") ==
        "config.json: qk_norm: is false: this architecture has norms of Q and K in every layer");
  CHECK(refusal_of_family("apertus", "post_norm", "true") ==
        "config.json: post_norm: is true: a norm behind blocks in this architecture is not "
        "supported");
}

TEST_CASE("families: a BLOOM whose stream is normed, or that gives two widths, is refused") {
  CHECK(refusal_of_family("bloom", "apply_residual_connection_post_layernorm", "true") ==
        "config.json: apply_residual_connection_post_layernorm: is true: a stream that is normed "
        "before it joins a block's output is not supported");
  CHECK(refusal_of_family("bloom", "n_embed", "64") ==
        "config.json: hidden_size: is 32, but config.json: n_embed is 64");
}

TEST_CASE("families: a Gemma 4 Unified whose tokens see later ones is refused") {
  const Json config = test::family_golden("gemma4-unified").at("config");
  JsonWriter text;
  text.value(config.at("text_config"));
  const std::string inner = json_with_member(text.text(), "use_bidirectional_attention", "\"all\"");
  CHECK(
      refusal_of_family("gemma4-unified", "text_config", inner) ==
      "config.json: text_config.use_bidirectional_attention: is a string (\"all\"), expected true "
      "or false");
}

TEST_CASE("architectures: EXAONE 4 without the key of its window has layers that do not rotate") {
  const Json golden = test::family_golden("exaone4").at("config");
  JsonWriter text;
  text.begin_object();
  for (size_t i = 0; i < golden.size(); ++i) {
    if (golden.key(i) != "sliding_window") text.member(golden.key(i), golden.value(i));
  }
  text.end_object();
  const ModelConfig config = parse_config(text.text());
  CHECK(config.window(0) == 4096);
  CHECK(config.layer_ropes == std::vector<int32_t>{0, 0, 0, -1});
}

TEST_CASE("architectures: what HunYuan's config may ask for, and is not computed, is refused") {
  const auto refused = [](const char* key, const char* value) {
    return error_of_config(family_with("hunyuan-dense", key, value));
  };
  CHECK(refused("use_qk_norm", "false") ==
        "config.json: use_qk_norm: is false, expected true: a HunYuan without it is not supported");
  CHECK(refused("use_rotary_pos_emb", "false") ==
        "config.json: use_rotary_pos_emb: is false, expected true: a HunYuan without it is not "
        "supported");
  CHECK(refused("use_cla", "true") ==
        "config.json: use_cla: is true: reading the cache of another layer is not supported");
  CHECK(refused("attention_head_dim", "16") ==
        "config.json: attention_head_dim: is 16, expected 12 like head_dim: give both keys the "
        "size of a head");
  CHECK(refused("norm_type", R"("fused")") ==
        "config.json: norm_type: is \"fused\", expected \"rms\": no other norm is supported");
  CHECK(refused("num_experts", "4") == "config.json: num_experts: is 4, expected 0 to 1");
  CHECK(refused("rope_scaling", R"({"type": "dynamic", "factor": 1, "alpha": 0})") ==
        "config.json: rope_scaling.alpha: is 0, expected a positive number");
}

TEST_CASE("architectures: experts of HunYuan that runtimes would compute otherwise are refused") {
  const auto refused = [](const char* key, const char* value) {
    return error_of_config(family_with("hunyuan-moe", key, value));
  };
  CHECK(refused("moe_topk", "[2, 3]") ==
        "config.json: moe_topk[1]: is 3, expected 2 like for layer 0: layers that differ in this "
        "are not supported");
  CHECK(refused("moe_topk", "[2]") ==
        "config.json: moe_topk: has 1 number, expected one for each of 2 layers");
  CHECK(refused("moe_intermediate_size", "12") ==
        "config.json: moe_intermediate_size: is 12, expected 24, which transformers takes for it");
  CHECK(refused("num_shared_expert", "[2, 2]") ==
        "config.json: num_shared_expert[0]: is 2, expected 1, which transformers takes for it");
  CHECK(refused("n_group", "2") ==
        "config.json: n_group: is 2, expected false or 1: groups and factors of experts are not "
        "supported here");
  CHECK(refused("use_mixed_mlp_moe", "false") ==
        "config.json: use_mixed_mlp_moe: is false, expected true: a HunYuan without it is not "
        "supported");
  CHECK(refused("num_experts", "1") ==
        "config.json: num_experts: is 1, expected at least 2 experts, or 0 for a model without");
}

TEST_CASE("architectures: what Trinity's config may ask for, and is not computed, is refused") {
  const auto refused = [](const char* key, const char* value) {
    return error_of_config(family_with("afmoe", key, value));
  };
  CHECK(refused("global_attn_every_n_layers", "2") ==
        "config.json: global_attn_every_n_layers: is 2, expected 4 in a config without "
        "layer_types: list the type of each layer there");
  CHECK(refused("attention_bias", "true") ==
        "config.json: attention_bias: is true: a bias beside the gate of attention is not "
        "supported");
  CHECK(refused("num_expert_groups", "2") ==
        "config.json: num_expert_groups: is 2, expected 1: groups of experts are not supported "
        "here");
  CHECK(refused("route_norm", "false") ==
        "config.json: route_norm: is false, expected true: weights that are not normalised are "
        "not supported here");
  CHECK(refused("score_func", R"("softmax")") ==
        "config.json: score_func: is \"softmax\", expected 'sigmoid': no other router of this "
        "architecture is supported");
}

TEST_CASE("architectures: lists that only vLLM reads of a K-EXAONE are refused") {
  const auto refused = [](const char* key, const char* value) {
    return error_of_config(family_with("exaone-moe", key, value));
  };
  CHECK(refused("sliding_windows", "[7, 7, 7, 0, 7]") ==
        "config.json: sliding_windows: is [7, 7, 7, 0, 7], expected null: a number of its own for "
        "each "
        "layer is not supported here");
  CHECK(
      refused("swiglu_limits", "[0, 7, 7, 7, 7]") ==
      "config.json: swiglu_limits: is [0, 7, 7, 7, 7], expected null: a number of its own for each "
      "layer is not supported here");
  CHECK(refused("layer_types", R"(["full_attention", "full_attention", "full_attention", )"
                               R"("full_attention", "full_attention"])") ==
        "config.json: no layer has a window, expected 'sliding_attention' in layer_types, or null "
        "for sliding_window: runtimes differ in whether such a model rotates");
  CHECK(refused("scoring_func", R"("softmax")") ==
        "config.json: scoring_func: is \"softmax\", expected 'sigmoid': no other router of this "
        "architecture is supported");
}

TEST_CASE("architectures: ropes of a GPT-J that runtimes would compute otherwise are refused") {
  const auto refused = [](const char* key, const char* value) {
    return error_of_config(family_with("gptj", key, value));
  };
  CHECK(refused("rotary_dim", "null") ==
        "config.json: rotary_dim: is null, expected the number of rotated elements of a head");
  CHECK(refused("rotary_dim", "3") == "config.json: rotary_dim: is 3, expected an even number");
  CHECK(refused("rotary_dim", "10") == "config.json: rotary_dim: is 10, expected 2 to 8");
  CHECK(refused("rope_theta", "500.0") ==
        "config.json: rope_theta: is 500.0, expected 10000, which transformers takes");
  CHECK(refused("rope_scaling", R"({"type": "linear", "factor": 2.0})") ==
        "config.json: rope_scaling: is {\"type\": \"linear\", \"factor\": 2.0}, expected null: "
        "transformers does not scale the rope of a GPT-J");
}

TEST_CASE("architectures: a Mellum needs layer_types, and a rope in rope_parameters alone") {
  CHECK(error_of_config(family_with("mellum", "rope_theta", "500.0")) ==
        "config.json: rope_theta: is 500.0, expected null: transformers ignores it here. Write "
        "rope_parameters with an object for 'full_attention' and one for 'sliding_attention'");
  CHECK(error_of_config(family_with("mellum", "layer_types", "null")) ==
        "config.json: the key 'layer_types' is null");
}

TEST_CASE("architectures: keys of HunYuan 3 that only vLLM reads have to agree") {
  const auto refused = [](const char* key, const char* value) {
    return error_of_config(family_with("hy-v3", key, value));
  };
  CHECK(refused("expert_hidden_dim", "12") ==
        "config.json: moe_intermediate_size: is 24, but config.json: expert_hidden_dim is 12");
  CHECK(refused("route_norm", "false") ==
        "config.json: route_norm: is false, expected true, which transformers takes for it");
  CHECK(refused("first_k_dense_replace", "2") ==
        "config.json: first_k_dense_replace: is 2, which transformers ignores: list the type of "
        "each layer in mlp_layer_types");
  CHECK(refused("mlp_bias", "true") ==
        "config.json: mlp_bias: is true: a bias beside experts is not supported");
}

TEST_CASE("architectures: what ERNIE with experts may ask for, and is not computed, is refused") {
  CHECK(error_of_config(family_with("ernie4_5-moe", "use_bias", "true")) ==
        "config.json: use_bias: is true: a bias beside experts is not supported");
  CHECK(error_of_config(family_with("ernie4_5-moe", "moe_norm_min", "0.5")) ==
        "config.json: moe_norm_min: is 0.5, expected at most 1e-6: a larger one would change "
        "weights, which is not supported");
}

TEST_CASE("architectures: what a family's config may ask for, and is not computed, is refused") {
  CHECK(error_of_config(family_with("olmo", "clip_qkv", "8.0")) ==
        "config.json: clip_qkv: is 8.0, expected null: clipping of Q, K and V is not supported");
  CHECK(error_of_config(family_with("gemma", "use_bidirectional_attention", "true")) ==
        "config.json: use_bidirectional_attention: is true: attention to tokens that come later is "
        "not supported");
  CHECK(error_of_config(family_with("gemma3", "attn_logit_softcapping", "50.0")) ==
        "config.json: attn_logit_softcapping: is 50.0: capping of logits is not supported");
  CHECK(error_of_config(family_with("cohere2", "use_qk_norm", "true")) ==
        "config.json: use_qk_norm: is true: a norm of Q and K in this architecture is not "
        "supported");
  CHECK(error_of_config(family_with("gpt2", "add_cross_attention", "true")) ==
        "config.json: add_cross_attention: is true: attention to another model is not supported");
  CHECK(error_of_config(family_with("opt", "_remove_final_layer_norm", "true")) ==
        "config.json: _remove_final_layer_norm: is true: a model without its last norm is not "
        "supported");
  CHECK(error_of_config(family_with("opt", "layer_norm_elementwise_affine", "false")) ==
        "config.json: layer_norm_elementwise_affine: is false: a layer norm without weights is not "
        "supported");
  CHECK(error_of_config(family_with("falcon-new", "num_ln_in_parallel_attn", "3")) ==
        "config.json: num_ln_in_parallel_attn: is 3, expected 1 to 2");
  CHECK(error_of_config(family_with("gpt-neox", "rotary_pct", "0.4")) ==
        "config.json: rotary_pct: is 0.4, which is 3 of the 8 elements of a head, expected an even "
        "number of them");
  CHECK(error_of_config(family_with("minicpm", "scale_depth", "null")) ==
        "config.json: the key 'scale_depth' is null");
  CHECK(error_of_config(family_with("minicpm", "num_experts", "8")) ==
        "config.json: num_experts: asks for experts, which MiniCPMForCausalLM has not");
  CHECK(error_of_config(family_with("minicpm", "sparse_config", R"({"topk": 64})"))
            .ends_with("attention to a choice of tokens is not supported"));
  CHECK(error_of_config(family_with("gemma3n", "activation_sparsity_pattern", "0.5")) ==
        "config.json: activation_sparsity_pattern: is 0.5, expected a number for each of 5 layers");
  CHECK(error_of_config(family_with("gemma3n", "activation_sparsity_pattern", "[0, 0, 0, 0, 1]")) ==
        "config.json: activation_sparsity_pattern[4]: is 1, expected a share from 0 to less than "
        "1");
  CHECK(error_of_config(family_with("gemma3n", "altup_num_inputs", "1")) ==
        "config.json: altup_num_inputs: is 1, expected 2 to 8");
  CHECK(error_of_config(family_with("gemma3n", "altup_active_idx", "4")) ==
        "config.json: altup_active_idx: is 4, expected 0 to 3");
  CHECK(error_of_config(family_with("gemma3n", "hidden_size_per_layer_input", "0")) ==
        "config.json: hidden_size_per_layer_input: is 0, expected 1 or more");
  CHECK(error_of_config(family_with("gemma3n", "intermediate_size", "[40, 40]")) ==
        "config.json: intermediate_size: has 2 numbers, expected one for each of 5 layers");
  CHECK(error_of_config(family_with("gemma4-experts", "top_k_experts", "6")) ==
        "config.json: top_k_experts: is 6, expected no more than the 5 experts of config.json: "
        "num_experts");
  std::string llama4 = family_with("llama4", "attention_bias", "false");
  const std::string key = "attention_chunk_size";
  llama4.replace(llama4.find(key), key.size(), "_");
  CHECK(error_of_config(llama4) == "config.json: the key 'attention_chunk_size' is missing");
  CHECK(error_of_config(family_with("smollm3", "no_rope_layers", "[1, 0]")) ==
        "config.json: no_rope_layers: has 2 numbers, expected one for each of 3 layers");
  CHECK(error_of_config(family_with("ministral3", "rope_parameters", "null")) ==
        "config.json: the key 'rope_parameters' is null");
  CHECK(error_of_config(family_with("glm4-moe", "scoring_func", R"("softmax")")) ==
        "config.json: scoring_func: is \"softmax\", expected 'sigmoid': no other router of this "
        "architecture is supported");
  CHECK(error_of_config(family_with("minimax-m2", "use_qk_norm", "false")) ==
        "config.json: use_qk_norm: is false: a model without it is not supported");
  CHECK(error_of_config(family_with("minimax-m2", "use_routing_bias", "false")) ==
        "config.json: use_routing_bias: is false: a model without it is not supported");
  CHECK(error_of_config(family_with("minimax-m2", "shared_intermediate_size", "8")) ==
        "config.json: shared_intermediate_size: is 8: a shared expert is not supported here");
  CHECK(error_of_config(family_with("minimax-m2", "rotary_dim", "5")) ==
        "config.json: rotary_dim: is 5, expected an even number");
  CHECK(error_of_config(family_with("minimax-m2", "attn_type_list", "[1, 0]")) ==
        "config.json: attn_type_list[1]: is 0, which makes the mixing of layer 1 'recurrent', "
        "expected 'full' in MiniMaxM2ForCausalLM");
  CHECK(error_of_config(family_with("granite", "logits_scaling", "0")) ==
        "config.json: logits_scaling: is 0, expected a positive number");
}

}  // namespace fp8kv
