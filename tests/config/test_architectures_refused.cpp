#include <doctest/doctest.h>

#include "config/architectures.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::config_with;
using test::error_of_config;
using test::llama_with;
using test::parse_config;
using test::through_folder;

constexpr const char* kSupported =
    "supported are LlamaForCausalLM, MistralForCausalLM, Ministral3ForCausalLM, Qwen2ForCausalLM, "
    "Qwen3ForCausalLM, GemmaForCausalLM, Gemma2ForCausalLM, Gemma3ForCausalLM, Gemma3nForCausalLM, "
    "Gemma4ForCausalLM, Phi3ForCausalLM, PhiForCausalLM, GlmForCausalLM, Glm4ForCausalLM, "
    "GraniteForCausalLM, Olmo2ForCausalLM, Olmo3ForCausalLM, CohereForCausalLM, "
    "Cohere2ForCausalLM, SmolLM3ForCausalLM, StableLmForCausalLM, Starcoder2ForCausalLM, "
    "MixtralForCausalLM, Qwen2MoeForCausalLM, Qwen3MoeForCausalLM, OlmoeForCausalLM, "
    "Glm4MoeForCausalLM, MiniMaxM2ForCausalLM, GptOssForCausalLM, GraniteMoeForCausalLM, "
    "DeepseekV2ForCausalLM, DeepseekV3ForCausalLM, DeepseekV32ForCausalLM, Glm4MoeLiteForCausalLM, "
    "GlmMoeDsaForCausalLM, YoutuForCausalLM, InternLM2ForCausalLM, InternLM3ForCausalLM, "
    "BaichuanForCausalLM, BaiChuanForCausalLM, MiniCPMForCausalLM, Llama4ForCausalLM, "
    "GraniteMoeHybridForCausalLM, NemotronHForCausalLM, BambaForCausalLM, FalconH1ForCausalLM, "
    "GPT2LMHeadModel, GPTBigCodeForCausalLM, OPTForCausalLM, GPTNeoXForCausalLM, "
    "FalconForCausalLM, Qwen3NextForCausalLM, Qwen3_5ForCausalLM, Qwen3_5MoeForCausalLM, "
    "AfmoeForCausalLM, ArceeForCausalLM, Cohere2MoeForCausalLM, CwmForCausalLM, Dots1ForCausalLM, "
    "Ernie4_5ForCausalLM, Ernie4_5_MoeForCausalLM, Exaone4ForCausalLM, ExaoneMoeForCausalLM, "
    "ExaoneMoEForCausalLM, FlexOlmoForCausalLM, Gemma4UnifiedForConditionalGeneration, "
    "Glm4vForConditionalGeneration, Glm4vMoeForConditionalGeneration, GPTJForCausalLM, "
    "GraniteMoeSharedForCausalLM, GraniteMoeSWAForCausalLM, GraniteSWAForCausalLM, "
    "HeliumForCausalLM, HunYuanDenseV1ForCausalLM, HunYuanMoEV1ForCausalLM, HYV3ForCausalLM, "
    "HyperCLOVAXForCausalLM, IQuestCoderForCausalLM, Jais2ForCausalLM, MellumForCausalLM, "
    "MiniCPM3ForCausalLM, MinistralForCausalLM, Mistral4ForCausalLM, NemotronForCausalLM, "
    "OlmoForCausalLM, PersimmonForCausalLM, Qwen3OmniMoeForConditionalGeneration, "
    "Qwen3VLMoeForConditionalGeneration, SarvamMLAForCausalLM, SarvamMoEForCausalLM, "
    "SeedOssForCausalLM, SolarOpenForCausalLM, VaultGemmaForCausalLM, "
    "Exaone4_5_ForConditionalGeneration, Gemma3ForConditionalGeneration, "
    "Gemma3nForConditionalGeneration, Gemma4ForConditionalGeneration, "
    "Glm46VForConditionalGeneration, Idefics3ForConditionalGeneration, "
    "InternS1ForConditionalGeneration, InternVLChatModel, InternVLForConditionalGeneration, "
    "KimiK25ForConditionalGeneration, Llama4ForConditionalGeneration, "
    "LlavaForConditionalGeneration, LlavaNextForConditionalGeneration, "
    "LlavaOnevisionForConditionalGeneration, Mistral3ForConditionalGeneration, "
    "Qwen2VLForConditionalGeneration, Qwen2_5OmniForConditionalGeneration, Qwen2_5OmniModel, "
    "Qwen2_5_VLForConditionalGeneration, Qwen3VLForConditionalGeneration, "
    "Qwen3_5ForConditionalGeneration, Qwen3_5MoeForConditionalGeneration and "
    "SmolVLMForConditionalGeneration";

// The config.json of this architecture with one member set to a JSON value.
std::string row_with(const Architecture& row, const std::string& key, const std::string& value) {
  for (const std::string& name : test::family_cases()) {
    const Json config = test::family_golden(name).at("config");
    if (config.at("architectures")[0].as_string() != row.name) continue;
    JsonWriter text;
    text.value(config);
    return json_with_member(text.text(), key, value);
  }
  return config_with(row.name, key, value);
}

// The config.json of a family's case with one member set to a JSON value.
std::string family_with(const char* name, const std::string& key, const std::string& value) {
  JsonWriter text;
  text.value(test::family_golden(name).at("config"));
  return json_with_member(text.text(), key, value);
}

TEST_CASE("architectures: what is not computed of latent attention is refused by name") {
  const auto refused = [](const char* name, const char* key, const char* value) {
    return error_of_config(family_with(name, key, value));
  };
  CHECK(refused("deepseek-v3", "qk_rope_head_dim", "5") ==
        "config.json: qk_rope_head_dim: is 5, expected an even number, since K is rotated in "
        "pairs");
  CHECK(refused("deepseek-v3", "num_key_value_heads", "2") ==
        "config.json: num_key_value_heads: is 2, expected 4, as many as attention heads: all of "
        "them read the latent");
  CHECK(refused("deepseek-v3", "moe_layer_freq", "2") ==
        "config.json: moe_layer_freq: is 2, expected 1: experts in some of the layers are not "
        "supported");
  CHECK(refused("deepseek-v3", "scoring_func", "\"softmax\"") ==
        "config.json: scoring_func: is \"softmax\", expected 'sigmoid': no other router of this "
        "architecture is supported");
  CHECK(refused("deepseek-v2", "norm_topk_prob", "true") ==
        "config.json: norm_topk_prob: is true: dividing the weights of experts by their sum "
        "is not supported");
  CHECK(refused("deepseek-v2", "topk_method", "\"noaux_tc\"") ==
        "config.json: topk_method: is \"noaux_tc\", expected 'group_limited_greedy': no other "
        "router of this architecture is supported");
  CHECK(refused("glm-moe-dsa", "rope_interleave", "false") ==
        "config.json: rope_interleave: is false, expected true: neighbours are rotated in this "
        "architecture");
  CHECK(refused("glm-moe-dsa", "index_topk", "null") ==
        "config.json: the key 'index_topk' is null");
  CHECK(refused("glm-moe-dsa-seven", "indexer_types", R"(["full"])") ==
        R"(config.json: indexer_types: is ["full"], expected one for each of 3 layers)");
}

TEST_CASE("architectures: Kimi K2 is DeepSeek V3 by another model_type, and Qwen is not") {
  const std::string kimi = family_with("kimi-k2", "model_type", "\"kimi_k2\"");
  CHECK(parse_config(kimi).latent.has_value());
  CHECK(error_of_config(family_with("kimi-k2", "model_type", "\"deepseek_v2\"")) ==
        "config.json: model_type: is \"deepseek_v2\", but 'architectures' names "
        "'DeepseekV3ForCausalLM', which is 'deepseek_v3'");
}

TEST_CASE("architectures: a window that contradicts itself is refused") {
  const std::string qwen = test::tiny_config_json(test::tiny_config("Qwen2ForCausalLM"));
  const auto with_types = [](const std::string& text, const char* types) {
    return json_with_member(text, "layer_types", types);
  };
  CHECK(error_of_config(with_types(qwen, R"(["full_attention"])")) ==
        R"(config.json: layer_types: is ["full_attention"], expected an array of 2 layer types)");
  CHECK(error_of_config(with_types(qwen, R"(["full_attention", "linear_attention"])")) ==
        "config.json: layer_types[1]: is \"linear_attention\", which makes the mixing of layer 1 "
        "'recurrent', expected 'full' or 'window' in Qwen2ForCausalLM");
  CHECK(error_of_config(with_types(json_with_member(qwen, "sliding_window", "4"),
                                   R"(["full_attention", "sliding_attention"])")) ==
        "config.json: layer_types: has sliding_attention, but use_sliding_window is not true");
  CHECK(error_of_config(with_types(json_with_member(qwen, "use_sliding_window", "true"),
                                   R"(["full_attention", "sliding_attention"])")) ==
        "config.json: the key 'sliding_window' is missing, though there are layers that need it");
  CHECK(error_of_config(config_with("MistralForCausalLM", "sliding_window", "0")) ==
        "config.json: sliding_window: is 0, expected 1 to 2147483647");
  CHECK(error_of_config(with_types(config_with("MistralForCausalLM", "sliding_window", "4"),
                                   R"(["full_attention", "sliding_attention"])")) ==
        "config.json: layer_types: does not fit sliding_window, which is one for all layers of "
        "MistralForCausalLM");
  CHECK(error_of_config(json_with_member(config_with("MistralForCausalLM", "sliding_window", "4"),
                                         "hybrid_override_pattern", R"("**")")) ==
        "config.json: hybrid_override_pattern: does not fit sliding_window, which is one for all "
        "layers of MistralForCausalLM");
  CHECK(error_of_config(R"({"architectures": ["MistralForCausalLM"], "num_hidden_layers": 1,
                     "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 8,
                     "vocab_size": 8, "max_position_embeddings": 8, "rms_norm_eps": 1e-5})") ==
        "config.json: the key 'sliding_window' is missing");
}

TEST_CASE("architectures: layers that it does not have are refused by what makes them so") {
  const auto refused = [](const char* key, const char* value) {
    return error_of_config(llama_with(key, value));
  };
  CHECK(refused("layer_types", R"(["full_attention", "linear_attention"])") ==
        "config.json: layer_types[1]: is \"linear_attention\", which makes the mixing of layer 1 "
        "'recurrent', expected 'full' in LlamaForCausalLM");
  CHECK(refused("full_attention_interval", "2") ==
        "config.json: full_attention_interval: is 2, which makes the mixing of layer 0 "
        "'recurrent', expected 'full' in LlamaForCausalLM");
  // The error names the key that decides, even if other keys say the same.
  const std::string typed = llama_with("layer_types", R"(["full_attention", "full_attention"])");
  CHECK(error_of_config(json_with_member(typed, "hybrid_override_pattern", R"("*M")")) ==
        "config.json: hybrid_override_pattern: is \"*M\", which makes the mixing of layer 1 "
        "'recurrent', expected 'full' in LlamaForCausalLM");
  CHECK(refused("v_head_dim", "4") ==
        "config.json: v_head_dim: is 4, but LlamaForCausalLM has heads of the same size for K and "
        "V");
  CHECK(refused("num_kv_shared_layers", "1") ==
        "config.json: num_kv_shared_layers: is 1, but LlamaForCausalLM has a KV cache of its own "
        "in every layer");
  CHECK(test::help_of([] { parse_config(llama_with("v_head_dim", "4")); }) ==
        "plan, inspect, extract and inject take such a model");
  CHECK(refused("attn_layer_indices", "[0]") ==
        "config.json: attn_layer_indices: is [0], which makes the mixing of layer 1 'recurrent', "
        "expected 'full' in LlamaForCausalLM");
  CHECK(refused("block_types", "[0]") ==
        "config.json: block_types: which layers hold what cache is said in a way not known here");
}

TEST_CASE("architectures: layers with heads of their own are refused by key") {
  const auto refused = [](const char* key, const char* value) {
    const std::string qwen = config_with("Qwen2ForCausalLM", "sliding_window", "4");
    const std::string on = json_with_member(qwen, "use_sliding_window", "true");
    const std::string mixed =
        json_with_member(on, "layer_types", R"(["full_attention", "sliding_attention"])");
    const std::string k_eq_v = json_with_member(mixed, "attention_k_eq_v", "true");
    return error_of_config(json_with_member(k_eq_v, key, value));
  };
  CHECK(refused("global_head_dim", "16") ==
        "config.json: global_head_dim: is 16, but Qwen2ForCausalLM has heads of the same size in "
        "every layer");
  CHECK(refused("num_global_key_value_heads", "1") ==
        "config.json: num_global_key_value_heads: is 1, but Qwen2ForCausalLM has as many KV heads "
        "in every layer");
}

TEST_CASE("architectures: an unknown one is refused with the list of the known") {
  const auto refused = [](const char* value) {
    return error_of_config(llama_with("architectures", value));
  };
  CHECK(refused(R"(["Qwen4MoeForCausalLM"])") ==
        "config.json: architectures: 'Qwen4MoeForCausalLM' is not supported");
  CHECK(refused(R"(["LLaMAForCausalLM"])") ==
        "config.json: architectures: 'LLaMAForCausalLM' is not supported (did you mean "
        "'LlamaForCausalLM'?)");
  CHECK(refused("[]") == "config.json: names no architecture under 'architectures'");
  CHECK(refused("null") == "config.json: names no architecture under 'architectures'");
  CHECK(refused("[1]") == "config.json: architectures[0]: is a number (1), expected a string");
  CHECK(test::help_of([] {
          parse_config(llama_with("architectures", R"(["Qwen4MoeForCausalLM"])"));
        }) == kSupported);
  CHECK(error_of_config(json_with_member(llama_with("architectures", R"(["QWenLMHeadModel"])"),
                                         "auto_map", R"({"AutoConfig": "x"})")) ==
        "config.json: architectures: 'QWenLMHeadModel' is not supported, and it brings code of its "
        "own (auto_map), which is never run here");
}

TEST_CASE("architectures: impossible dimensions are refused by key") {
  CHECK(error_of_config(llama_with("hidden_size", "0")) ==
        "config.json: hidden_size: is 0, expected 1 to 268435456");
  CHECK(error_of_config(llama_with("num_hidden_layers", "-1")) ==
        "config.json: num_hidden_layers: is -1, expected 1 to 4096");
  CHECK(error_of_config(llama_with("num_hidden_layers", "4097")) ==
        "config.json: num_hidden_layers: is 4097, expected 1 to 4096");
  CHECK(error_of_config(llama_with("vocab_size", "4611686018427387904")) ==
        "config.json: vocab_size: is 4611686018427387904, expected 1 to 268435456");
  CHECK(error_of_config(llama_with("intermediate_size", "1.5")) ==
        "config.json: intermediate_size: is a number (1.5), expected an integer");
  CHECK(error_of_config(R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1,
                     "num_attention_heads": 2, "hidden_size": 8})") ==
        "config.json: the key 'intermediate_size' is missing");
  CHECK(error_of_config(llama_with("max_position_embeddings", "null")) ==
        "config.json: the key 'max_position_embeddings' is null");
  CHECK(error_of_config(llama_with("num_key_value_heads", "3")) ==
        "config.json: num_key_value_heads: is 3, which does not divide the 4 attention heads");
  CHECK(error_of_config(llama_with("num_key_value_heads", "8")) ==
        "config.json: num_key_value_heads: is 8, which does not divide the 4 attention heads");
  CHECK(error_of_config(llama_with("head_dim", "7")) ==
        "config.json: has heads of 7 elements, expected an even number, since they are rotated in "
        "pairs");
  CHECK(error_of_config(json_with_member(llama_with("head_dim", "null"), "hidden_size", "34")) ==
        "config.json: hidden_size: is 34, which the 4 attention heads do not divide, and there is "
        "no head_dim");
  CHECK(error_of_config(llama_with("rms_norm_eps", "0")) ==
        "config.json: rms_norm_eps: is 0, expected a small positive number");
}

// transformers chooses the class by model_type, and vLLM by architectures.
TEST_CASE("architectures: a model_type of another architecture is refused") {
  CHECK(error_of_config(llama_with("model_type", R"("mistral")")) ==
        "config.json: model_type: is \"mistral\", but 'architectures' names 'LlamaForCausalLM', "
        "which is 'llama'");
  CHECK(test::help_of([] { parse_config(llama_with("model_type", R"("qwen2")")); }) ==
        "correct the one that is wrong: runtimes differ in which they go by");
  CHECK(parse_config(llama_with("model_type", "null")).n_layers() == 2);
  for (const Architecture& row : architectures()) {
    CAPTURE(row.name);
    CHECK(parse_config(row_with(row, "model_type", cat("\"", row.model_type, "\""))).n_layers() >=
          2);
    CHECK(error_of_config(row_with(row, "model_type", R"("bloom")"))
              .starts_with("config.json: model_type: is \"bloom\", but 'architectures' names "));
  }
}

// With is_causal false, transformers 5.23 lets every token see all others in any model.
TEST_CASE("architectures: attention to what comes later is refused") {
  for (const Architecture& row : architectures()) {
    CAPTURE(row.name);
    CHECK(error_of_config(row_with(row, "is_causal", "false")) ==
          "config.json: is_causal: is false: attention to tokens that come later is not supported");
    CHECK(parse_config(row_with(row, "is_causal", "true")).n_layers() >= 2);
  }
}

TEST_CASE("architectures: what would compute something else is refused by name") {
  CHECK(error_of_config(llama_with("hidden_act", R"("gelu")")) ==
        "config.json: hidden_act: the activation 'gelu' is not supported");
  CHECK(test::help_of([] { parse_config(llama_with("hidden_act", R"("gelu")")); }) ==
        "supported by LlamaForCausalLM: 'silu' and 'swish'");
  CHECK(parse_config(llama_with("hidden_act", R"("swish")")).block.activation == Activation::silu);
  CHECK(error_of_config(llama_with("attn_logit_softcapping", "50.0")) ==
        "config.json: attn_logit_softcapping: is 50.0: capping of logits is not supported");
  CHECK(error_of_config(llama_with("final_logit_softcapping", "30.0")) ==
        "config.json: final_logit_softcapping: is 30.0: capping of logits is not supported");
  CHECK(error_of_config(llama_with("partial_rotary_factor", "0.5")) ==
        "config.json: partial_rotary_factor: is 0.5: rotating only a part of each head is not "
        "supported");
  CHECK(error_of_config(llama_with("torch_dtype", R"("float64")")) ==
        "config.json: torch_dtype: is 'float64', expected float32, float16 or bfloat16");
  CHECK(error_of_config(llama_with("eos_token_id", "[1, -1]")) ==
        "config.json: eos_token_id[1]: is -1, expected a token id");
  CHECK(parse_config(llama_with("partial_rotary_factor", "1.0")).ropes[0].theta == 10000.0);
  CHECK(parse_config(llama_with("hidden_act", R"("swish")")).n_layers() == 2);
}

}  // namespace
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

TEST_CASE("architectures: a model around an unknown language model is refused by its type") {
  CHECK(error_of_config(R"({"architectures": ["LlavaForConditionalGeneration"],
      "model_type": "llava", "text_config": {"model_type": "bloom", "n_layer": 2}})") ==
        "config.json: text_config.model_type: is \"bloom\", a language model of "
        "LlavaForConditionalGeneration that is not supported");
  CHECK(error_of_config(R"({"architectures": ["LlavaForConditionalGeneration"],
      "model_type": "llama", "text_config": {"model_type": "llama"}})") ==
        "config.json: model_type: is \"llama\", but 'architectures' names "
        "'LlavaForConditionalGeneration', which is 'llava'");
  CHECK(error_of_config(R"({"architectures": ["LlavaForConditionalGeneration"],
      "model_type": "llava", "tie_word_embeddings": false, "torch_dtype": "float16", "text_config":
      {"model_type": "llama", "num_hidden_layers": 2, "tie_word_embeddings": true}})") ==
        "config.json: text_config: tie_word_embeddings: is true, but config.json: "
        "tie_word_embeddings is false");
}

// Source: the two classes of Gemma 3 in transformers 5.24.
TEST_CASE("architectures: a cap of logits is refused in Gemma 3 with vision, and not without") {
  const Json golden = test::family_golden("gemma3-vision").at("config");
  const auto with = [&](const char* cap) {
    JsonWriter text, config;
    text.value(golden.at("text_config"));
    config.value(golden);
    return json_with_member(config.text(), "text_config",
                            json_with_member(text.text(), "final_logit_softcapping", cap));
  };
  CHECK(error_of_config(with("0.5")) ==
        "config.json: text_config.final_logit_softcapping: is 0.5, expected null in "
        "Gemma3ForConditionalGeneration");
  CHECK(parse_config(with("null")).block.logit_cap == 0);
  CHECK(parse_config(family_with("gemma3", "final_logit_softcapping", "0.5")).block.logit_cap ==
        0.5);
}

TEST_CASE("architectures: older and newer spellings of a key may not contradict each other") {
  const auto error = [](const std::string& config, const char* key, const char* value) {
    return error_of_config(json_with_member(config, key, value));
  };
  const std::string llama = llama_with("rope_theta", "10000.0");
  const auto theta = [&](const std::string& config, const char* value) {
    return parse_config(json_with_member(config, "rope_parameters", value)).ropes[0].theta;
  };
  CHECK(theta(llama, R"({"rope_type": "default", "rope_theta": 10000})") == 10000);
  CHECK(error(llama, "rope_parameters", R"({"rope_type": "default", "rope_theta": 5.0})") ==
        "config.json: rope_theta: is 10000.0, but config.json: rope_parameters.rope_theta is 5.0");
  const std::string linear =
      json_with_member(llama, "rope_scaling", R"({"type": "linear", "factor": 2.0})");
  CHECK(theta(linear, R"({"rope_type": "linear", "factor": 2})") == 10000);
  CHECK(error(linear, "rope_parameters", R"({"rope_type": "linear", "factor": 4.0})") ==
        "config.json: rope_scaling.factor: is 2.0, but config.json: rope_parameters.factor is 4.0");
  CHECK(
      error(linear, "rope_parameters", R"({"rope_type": "default"})") ==
      R"(config.json: rope_scaling.type: is "linear", but config.json: rope_parameters.rope_type )"
      R"(is "default")");
  CHECK(error(family_with("phi", "partial_rotary_factor", "0.5"), "rope_parameters",
              R"({"rope_type": "default", "partial_rotary_factor": 0.25})") ==
        "config.json: partial_rotary_factor: is 0.5, but config.json: "
        "rope_parameters.partial_rotary_factor is 0.25");
  CHECK(error(llama_with("torch_dtype", R"("float16")"), "dtype", R"("bfloat16")") ==
        R"(config.json: torch_dtype: is "float16", but config.json: dtype is "bfloat16")");
}

}  // namespace fp8kv
