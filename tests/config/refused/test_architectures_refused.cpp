#include <doctest/doctest.h>

#include "config/architectures.h"
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
using test::through_folder;

constexpr const char* kSupported =
    "supported are LlamaForCausalLM, MistralForCausalLM, Ministral3ForCausalLM, Qwen2ForCausalLM, "
    "Qwen3ForCausalLM, GemmaForCausalLM, Gemma2ForCausalLM, Gemma3ForCausalLM, "
    "Gemma3nForCausalLM, Gemma4ForCausalLM, Phi3ForCausalLM, PhiForCausalLM, GlmForCausalLM, "
    "Glm4ForCausalLM, GraniteForCausalLM, Olmo2ForCausalLM, Olmo3ForCausalLM, CohereForCausalLM, "
    "Cohere2ForCausalLM, SmolLM3ForCausalLM, StableLmForCausalLM, Starcoder2ForCausalLM, "
    "MixtralForCausalLM, Qwen2MoeForCausalLM, Qwen3MoeForCausalLM, OlmoeForCausalLM, "
    "Glm4MoeForCausalLM, MiniMaxM2ForCausalLM, GptOssForCausalLM, GraniteMoeForCausalLM, "
    "DeepseekV2ForCausalLM, DeepseekV3ForCausalLM, DeepseekV32ForCausalLM, "
    "Glm4MoeLiteForCausalLM, GlmMoeDsaForCausalLM, YoutuForCausalLM, InternLM2ForCausalLM, "
    "InternLM3ForCausalLM, BaichuanForCausalLM, BaiChuanForCausalLM, MiniCPMForCausalLM, "
    "Llama4ForCausalLM, GraniteMoeHybridForCausalLM, NemotronHForCausalLM, BambaForCausalLM, "
    "FalconH1ForCausalLM, GPT2LMHeadModel, GPTBigCodeForCausalLM, OPTForCausalLM, "
    "GPTNeoXForCausalLM, FalconForCausalLM, Qwen3NextForCausalLM, Qwen3_5ForCausalLM, "
    "Qwen3_5MoeForCausalLM, AfmoeForCausalLM, ApertusForCausalLM, ArceeForCausalLM, "
    "AXK1ForCausalLM, "
    "BloomForCausalLM, Cohere2MoeForCausalLM, Cohere2VisionForConditionalGeneration, "
    "CwmForCausalLM, DeciLMForCausalLM, DeepseekV4ForCausalLM, DiffLlamaForCausalLM, "
    "Dots1ForCausalLM, "
    "Ernie4_5ForCausalLM, "
    "Ernie4_5_MoeForCausalLM, Ernie4_5_VLMoeForConditionalGeneration, "
    "Exaone4ForCausalLM, ExaoneMoeForCausalLM, ExaoneMoEForCausalLM, FlexOlmoForCausalLM, "
    "Gemma4UnifiedForConditionalGeneration, Glm4vForConditionalGeneration, "
    "Glm4vMoeForConditionalGeneration, Glm5NextForConditionalGeneration, GPTJForCausalLM, "
    "GraniteMoeSharedForCausalLM, "
    "GraniteMoeSWAForCausalLM, GraniteSWAForCausalLM, HeliumForCausalLM, "
    "HunYuanDenseV1ForCausalLM, HunYuanMoEV1ForCausalLM, HYV3ForCausalLM, HYV4ForCausalLM, "
    "HYV4VLForConditionalGeneration, "
    "HyperCLOVAXForCausalLM, "
    "InklingForCausalLM, IQuestCoderForCausalLM, Jais2ForCausalLM, JambaForCausalLM, "
    "KimiK3ForConditionalGeneration, KimiLinearForCausalLM, "
    "LagunaForCausalLM, "
    "Lfm2ForCausalLM, "
    "Lfm2MoeForCausalLM, Lfm3ForCausalLM, BailingMoeV2ForCausalLM, BailingMoeV2_5ForCausalLM, "
    "BailingMoeV3ForCausalLM, BailingHybridForCausalLM, "
    "LongcatFlashForCausalLM, "
    "MellumForCausalLM, MiMoForCausalLM, MiMoV2FlashForCausalLM, MiMoV2ForCausalLM, "
    "MiniMaxForCausalLM, MiniMaxM1ForCausalLM, MiniMaxM3SparseForConditionalGeneration, "
    "MiniMaxText01ForCausalLM, MiniCPM3ForCausalLM, "
    "MinistralForCausalLM, Mistral4ForCausalLM, "
    "MptForCausalLM, MPTForCausalLM, MuseGlimmerForConditionalGeneration, "
    "MuseSparkForConditionalGeneration, NanoChatForCausalLM, "
    "NemotronForCausalLM, "
    "OlmoForCausalLM, OlmoHybridForCausalLM, PersimmonForCausalLM, "
    "Phi4MultimodalForCausalLM, Phi4MMForCausalLM, PhimoeForCausalLM, PhiMoEForCausalLM, "
    "Qwen3OmniMoeForConditionalGeneration, Qwen3VLMoeForConditionalGeneration, "
    "Qwen4ExpForCausalLM, SarvamMLAForCausalLM, SarvamMoEForCausalLM, SeedOssForCausalLM, "
    "SolarOpenForCausalLM, "
    "Step3p5ForCausalLM, Step3p7ForConditionalGeneration, VaultGemmaForCausalLM, "
    "Zamba2ForCausalLM, "
    "Exaone4_5_ForConditionalGeneration, Gemma3ForConditionalGeneration, "
    "Gemma3nForConditionalGeneration, Gemma4ForConditionalGeneration, "
    "Glm46VForConditionalGeneration, Idefics3ForConditionalGeneration, "
    "InklingForConditionalGeneration, "
    "InternS1ForConditionalGeneration, InternVLChatModel, InternVLForConditionalGeneration, "
    "KimiK25ForConditionalGeneration, Llama4ForConditionalGeneration, "
    "LlavaForConditionalGeneration, LlavaNextForConditionalGeneration, "
    "LlavaOnevisionForConditionalGeneration, Mistral3ForConditionalGeneration, "
    "NemotronH_Nano_Omni_Reasoning_V3, NemotronH_Nano_VL_V2, NemotronH_Omni_Reasoning_V3, "
    "Qwen2VLForConditionalGeneration, Qwen2_5OmniForConditionalGeneration, Qwen2_5OmniModel, "
    "Qwen2_5_VLForConditionalGeneration, Qwen3VLForConditionalGeneration, "
    "Qwen3_5ForConditionalGeneration, Qwen3_5MoeForConditionalGeneration, "
    "Qwen4ExpForConditionalGeneration and "
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
  CHECK(refused("glm-moe-dsa", "indexer_rope_interleave", "false") ==
        "config.json: indexer_rope_interleave: is false, expected true in this architecture");
  CHECK(refused("deepseek-v32", "indexer_rope_interleave", "true") ==
        "config.json: indexer_rope_interleave: is true, expected false in this architecture");
  CHECK(refused("deepseek-v32", "index_head_dim", "6") ==
        "config.json: index_head_dim: is 6, expected an even number above 6, of which "
        "qk_rope_head_dim rotate");
  CHECK(refused("deepseek-v32", "q_lora_rank", "null") ==
        "config.json: the key 'q_lora_rank' is missing, and the indexer reads the vector of that "
        "size that Q is made from");
  CHECK(refused("glm-moe-dsa-shared", "indexer_types", R"(["shared", "full", "full"])") ==
        "config.json: layer 0 has no indexer of its own by indexer_types, index_topk_pattern or "
        "index_topk_freq, and no layer before it has one");
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
    CHECK(error_of_config(row_with(row, "model_type", R"("ctrl")"))
              .starts_with("config.json: model_type: is \"ctrl\", but 'architectures' names "));
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
TEST_CASE("architectures: a model around an unknown language model is refused by its type") {
  CHECK(error_of_config(R"({"architectures": ["LlavaForConditionalGeneration"],
      "model_type": "llava", "text_config": {"model_type": "ctrl", "n_layer": 2}})") ==
        "config.json: text_config.model_type: is \"ctrl\", a language model of "
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
