// Made by scripts/make_runtime_models.py: see there and runtime_models.h.
#include "scales/rules/runtime_models.h"

namespace fp8kv {
namespace {

constexpr KnownVersions always = {}, never = {.ever = false};

constexpr KnownVersions from(RuntimeVersion first) {
  return {.since = first};
}

// clang-format off
constexpr RuntimeSource kSources[] = {
    {"vLLM", "49 releases, 0.7.2 to 0.33.0", "model_executor/models/registry.py"},
    {"SGLang", "34 releases, 0.4.0 to 0.5.23", "EntryClass in srt/models"},
    {"TGI", "19 releases, 2.4.0 to 3.3.7", "ModelType in models/__init__.py"},
    {"transformers", "89 releases, 4.45.0 to 5.24.0", "models/auto/configuration_auto.py"},
};

// In the order of kSources.
constexpr RuntimeModel kModels[] = {
    {"LlamaForCausalLM", "llama", {always, always, always, always}},
    {"MistralForCausalLM", "mistral", {always, always, always, always}},
    {"Ministral3ForCausalLM", "ministral3", {from({0, 20}), from({0, 5, 7}), never, from({5})}},
    {"Qwen2ForCausalLM", "qwen2", {always, always, always, always}},
    {"Qwen3ForCausalLM", "qwen3", {from({0, 8, 4}), from({0, 4, 6}), never, from({4, 51})}},
    {"GemmaForCausalLM", "gemma", {always, always, always, always}},
    {"Gemma2ForCausalLM", "gemma2", {always, always, always, always}},
    {"Gemma3ForCausalLM", "gemma3_text", {from({0, 8}), from({0, 4, 5}), from({3, 2}), from({4, 50})}},
    {"Gemma3nForCausalLM", "gemma3n_text", {from({0, 10, 1}), from({0, 4, 9}), never, from({4, 53})}},
    {"Gemma4ForCausalLM", "gemma4_text", {from({0, 19}), from({0, 5, 11}), never, from({5, 5})}},
    {"Phi3ForCausalLM", "phi3", {always, always, always, always}},
    {"PhiForCausalLM", "phi", {always, from({0, 4, 10}), always, always}},
    {"GlmForCausalLM", "glm", {always, never, never, from({4, 46, 1})}},
    {"Glm4ForCausalLM", "glm4", {from({0, 8, 4}), from({0, 4, 8}), never, from({4, 51, 3})}},
    {"GraniteForCausalLM", "granite", {always, from({0, 4, 1}), always, always}},
    {"Olmo2ForCausalLM", "olmo2", {always, always, never, from({4, 47})}},
    {"Olmo3ForCausalLM", "olmo3", {from({0, 11}), never, never, from({4, 57, 1})}},
    {"CohereForCausalLM", "cohere", {always, always, always, always}},
    {"Cohere2ForCausalLM", "cohere2", {always, from({0, 4, 2}), never, from({4, 48})}},
    {"SmolLM3ForCausalLM", "smollm3", {from({0, 10, 1}), never, never, from({4, 53})}},
    {"StableLmForCausalLM", "stablelm", {always, always, never, always}},
    {"Starcoder2ForCausalLM", "starcoder2", {always, from({0, 5, 3}), always, always}},
    {"MixtralForCausalLM", "mixtral", {always, always, always, always}},
    {"Qwen2MoeForCausalLM", "qwen2_moe", {always, always, never, always}},
    {"Qwen3MoeForCausalLM", "qwen3_moe", {from({0, 8, 4}), from({0, 4, 6}), never, from({4, 51})}},
    {"OlmoeForCausalLM", "olmoe", {always, always, never, always}},
    {"Glm4MoeForCausalLM", "glm4_moe", {from({0, 10}), from({0, 4, 10}), never, from({4, 54})}},
    {"MiniMaxM2ForCausalLM", "minimax_m2", {from({0, 11, 1}), from({0, 5, 5}), never, from({5})}},
    {"GptOssForCausalLM", "gpt_oss", {from({0, 10, 1}), from({0, 5, 1}), never, from({4, 55})}},
    {"GraniteMoeForCausalLM", "granitemoe", {always, from({0, 4, 10}), never, always}},
    {"DeepseekV2ForCausalLM", "deepseek_v2", {always, always, always, from({4, 54})}},
    {"DeepseekV3ForCausalLM", "deepseek_v3", {always, from({0, 4, 1}), from({3, 1}), from({4, 51})}},
    {"DeepseekV32ForCausalLM", "deepseek_v32", {from({0, 11}), from({0, 5, 3}), never, from({5, 11})}},
    {"Glm4MoeLiteForCausalLM", "glm4_moe_lite", {from({0, 15}), from({0, 5, 8}), never, from({5})}},
    {"GlmMoeDsaForCausalLM", "glm_moe_dsa", {from({0, 16}), from({0, 5, 9}), never, from({5, 2})}},
    {"InternLM2ForCausalLM", "internlm2", {always, always, never, never}},
    {"InternLM3ForCausalLM", "internlm3", {always, from({0, 4, 2}), never, from({5, 23})}},
    {"BaichuanForCausalLM", "baichuan", {always.until({0, 25}), always, always, never}},
    {"BaiChuanForCausalLM", "baichuan", {always.until({0, 25}), never, always, never}},
    {"MiniCPMForCausalLM", "minicpm", {always, always, never, never}},
    {"Llama4ForCausalLM", "llama4_text", {from({0, 10, 1}), from({0, 4, 5}), never, from({4, 51})}},
    {"GraniteMoeHybridForCausalLM", "granitemoehybrid", {from({0, 9}), from({0, 5, 9}), never, from({4, 52, 1})}},
    {"NemotronHForCausalLM", "nemotron_h", {from({0, 9, 1}), from({0, 5, 4}), never, from({5, 3})}},
    {"BambaForCausalLM", "bamba", {from({0, 7, 3}).until({0, 24}), never, never, from({4, 48})}},
    {"FalconH1ForCausalLM", "falcon_h1", {from({0, 9}), from({0, 5, 3}), never, from({4, 53})}},
    {"GPT2LMHeadModel", "gpt2", {always, always, always, always}},
    {"GPTBigCodeForCausalLM", "gpt_bigcode", {always, always, always, always}},
    {"OPTForCausalLM", "opt", {always, from({0, 5, 2}), always, always}},
    {"GPTNeoXForCausalLM", "gpt_neox", {always, never, always, always}},
    {"FalconForCausalLM", "falcon", {always, never, always, always}},
    {"Qwen3NextForCausalLM", "qwen3_next", {from({0, 10, 2}), from({0, 5, 2}), never, from({4, 57, 1})}},
    {"Qwen3_5ForCausalLM", "qwen3_5_text", {from({0, 27}), from({0, 5, 17}), never, from({5, 2})}},
    {"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", {from({0, 27}), from({0, 5, 17}), never, from({5, 2})}},
    {"ArceeForCausalLM", "arcee", {from({0, 10}), from({0, 4, 10}), never, from({4, 53})}},
    {"CwmForCausalLM", "cwm", {from({0, 11}), never, never, from({5})}},
    {"Dots1ForCausalLM", "dots1", {from({0, 9, 2}).until({0, 24}), never, never, from({4, 53})}},
    {"Ernie4_5ForCausalLM", "ernie4_5", {from({0, 10, 1}), never, never, from({4, 54})}},
    {"Exaone4ForCausalLM", "exaone4", {from({0, 10}), from({0, 5, 9}), never, from({4, 54})}},
    {"FlexOlmoForCausalLM", "flex_olmo", {from({0, 11, 1}), never, never, from({4, 57, 1})}},
    {"GraniteMoeSharedForCausalLM", "granitemoeshared", {from({0, 8}), from({0, 5, 19}), never, from({4, 49})}},
    {"HeliumForCausalLM", "helium", {never, never, never, from({4, 49})}},
    {"HyperCLOVAXForCausalLM", "hyperclovax", {from({0, 18}), never, never, from({5, 9})}},
    {"IQuestCoderForCausalLM", "iquestcoder", {from({0, 14}), from({0, 5, 8}), never, from({5, 23})}},
    {"MinistralForCausalLM", "ministral", {never, never, never, from({4, 57, 1})}},
    {"NemotronForCausalLM", "nemotron", {always, never, never, always}},
    {"SeedOssForCausalLM", "seed_oss", {from({0, 10, 2}), never, never, from({4, 56})}},
    {"SolarOpenForCausalLM", "solar_open", {never, never, never, from({5})}},
    {"VaultGemmaForCausalLM", "vaultgemma", {from({0, 27}), never, never, from({4, 57, 1})}},
    {"YoutuForCausalLM", "youtu", {never, never, never, from({5, 1})}},
    {"GraniteSWAForCausalLM", "granite_swa", {from({0, 29}), from({0, 5, 19}), never, from({5, 15})}},
    {"GraniteMoeSWAForCausalLM", "granitemoe_swa", {from({0, 29}), from({0, 5, 19}), never, from({5, 15})}},
    {"HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", {from({0, 10}), from({0, 4, 10}), never, from({4, 56})}},
    {"HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", {from({0, 9, 2}), from({0, 4, 9}), never, from({4, 56})}},
    {"OlmoForCausalLM", "olmo", {always, always, never, always}},
    {"Jais2ForCausalLM", "jais2", {from({0, 13}), never, never, from({5})}},
    {"AfmoeForCausalLM", "afmoe", {from({0, 11, 1}), from({0, 5, 8}), never, from({5})}},
    {"ExaoneMoeForCausalLM", "exaone_moe", {from({0, 27}), from({0, 5, 22}), never, from({5, 1})}},
    {"ExaoneMoEForCausalLM", "exaone_moe", {from({0, 32}), from({0, 5, 9}), never, from({5, 1})}},
    {"GPTJForCausalLM", "gptj", {always, from({0, 5, 9}), always, always}},
    {"MellumForCausalLM", "mellum", {from({0, 22, 1}), from({0, 5, 16}), never, from({5, 10, 1})}},
    {"PersimmonForCausalLM", "persimmon", {always.until({0, 26}), from({0, 4, 10}), never, always}},
    {"PhimoeForCausalLM", "phimoe", {never, never, always, from({4, 46, 1})}},
    {"PhiMoEForCausalLM", "phimoe", {always, from({0, 4, 10}), always, from({4, 46, 1})}},
    {"MiMoV2FlashForCausalLM", "mimo_v2_flash", {from({0, 14}), from({0, 5, 7}), never, from({5, 13})}},
    {"LagunaForCausalLM", "laguna", {from({0, 21}), from({0, 5, 12}), never, from({5, 7})}},
    {"DeciLMForCausalLM", "nemotron-nas", {always, from({0, 5, 1}), never, never}},
    {"HYV3ForCausalLM", "hy_v3", {from({0, 20}), from({0, 5, 11}), never, from({5, 6})}},
    {"Ernie4_5_MoeForCausalLM", "ernie4_5_moe", {from({0, 9, 2}), from({0, 5, 1}), never, from({4, 54})}},
    {"Mistral4ForCausalLM", "mistral4", {never, never, never, from({5, 4})}},
    {"MiniCPM3ForCausalLM", "minicpm3", {always, always, never, from({5, 13})}},
    {"SarvamMLAForCausalLM", "sarvam_mla", {from({0, 18}), from({0, 5, 10}), never, from({5, 24})}},
    {"SarvamMoEForCausalLM", "sarvam_moe", {from({0, 18}), from({0, 5, 10}), never, from({5, 24})}},
    {"Cohere2MoeForCausalLM", "cohere2_moe", {from({0, 21}), from({0, 5, 13}), never, from({5, 9})}},
    {"Lfm2ForCausalLM", "lfm2", {from({0, 10, 2}), from({0, 5, 9}), never, from({4, 54})}},
    {"Lfm2MoeForCausalLM", "lfm2_moe", {from({0, 11, 1}), from({0, 5, 9}), never, from({5})}},
    {"ApertusForCausalLM", "apertus", {from({0, 10, 2}), from({0, 5, 3}), never, from({4, 56})}},
    {"NanoChatForCausalLM", "nanochat", {never, never, never, from({5})}},
    {"BloomForCausalLM", "bloom", {always, never, always, always}},
    {"Cohere2VisionForConditionalGeneration", "cohere2_vision", {from({0, 10, 1}), from({0, 5, 13}), never, from({4, 55})}},
    {"Gemma3ForConditionalGeneration", "gemma3", {from({0, 8}), from({0, 4, 5}), from({3, 2}), from({4, 50})}},
    {"Gemma3nForConditionalGeneration", "gemma3n", {from({0, 9, 2}), from({0, 4, 9}), never, from({4, 53})}},
    {"Gemma4ForConditionalGeneration", "gemma4", {from({0, 19}), from({0, 5, 11}), never, from({5, 5})}},
    {"KimiK25ForConditionalGeneration", "kimi_k25", {from({0, 15}), from({0, 5, 9}), never, from({5, 13})}},
    {"Llama4ForConditionalGeneration", "llama4", {from({0, 8, 3}), from({0, 4, 5}), from({3, 2, 2}), from({4, 51})}},
    {"LlavaForConditionalGeneration", "llava", {always, from({0, 4, 7}), never, always}},
    {"Mistral3ForConditionalGeneration", "mistral3", {from({0, 8, 3}), from({0, 4, 7}), never, from({4, 50})}},
    {"Qwen2VLForConditionalGeneration", "qwen2_vl", {always, always, from({2, 4, 1}), always}},
    {"Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", {always, from({0, 4, 4}), from({3, 1, 1}), from({4, 49})}},
    {"Qwen3VLForConditionalGeneration", "qwen3_vl", {from({0, 11}), from({0, 5, 3}), never, from({4, 57, 1})}},
    {"Qwen3_5ForConditionalGeneration", "qwen3_5", {from({0, 17}), from({0, 5, 9}), never, from({5, 2})}},
    {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", {from({0, 17}), from({0, 5, 9}), never, from({5, 2})}},
    {"Glm46VForConditionalGeneration", "glm46v", {never, never, never, from({5})}},
    {"Glm4vForConditionalGeneration", "glm4v", {from({0, 9, 2}), from({0, 5, 1}), never, from({4, 53})}},
    {"Glm4vMoeForConditionalGeneration", "glm4v_moe", {from({0, 10, 1}), from({0, 5, 1}), never, from({4, 56})}},
    {"Idefics3ForConditionalGeneration", "idefics3", {always, never, from({3, 0, 2}), from({4, 46, 1})}},
    {"InternVLChatModel", "internvl_chat", {always, from({0, 4, 7}), never, never}},
    {"InternVLForConditionalGeneration", "internvl", {from({0, 10, 2}), never, never, from({4, 52, 1})}},
    {"LlavaNextForConditionalGeneration", "llava_next", {always, never, always, always}},
    {"LlavaOnevisionForConditionalGeneration", "llava_onevision", {always, never, never, always}},
    {"Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", {from({0, 11}), from({0, 5, 3}), never, from({4, 57, 1})}},
    {"SmolVLMForConditionalGeneration", "smolvlm", {from({0, 8, 4}), never, never, from({4, 50})}},
    {"Qwen3OmniMoeForConditionalGeneration", "qwen3_omni_moe", {from({0, 11, 1}), from({0, 5, 4}), never, from({4, 57, 1})}},
    {"Gemma4UnifiedForConditionalGeneration", "gemma4_unified", {from({0, 23}), from({0, 5, 13}), never, from({5, 10, 1})}},
    {"Exaone4_5_ForConditionalGeneration", "exaone4_5", {from({0, 20}), never, never, from({5, 8})}},
    {"Qwen2_5OmniForConditionalGeneration", "qwen2_5_omni", {from({0, 9}), never, never, from({4, 52, 1})}},
    {"Qwen2_5OmniModel", "qwen2_5_omni", {from({0, 8, 5}), never, never, from({4, 52, 1})}},
    {"InternS1ForConditionalGeneration", "interns1", {from({0, 10, 1}), from({0, 4, 10}), never, never}},
    {"LlamaForCausalLMEagle3", "llama_eagle3", {from({0, 10, 2}), from({0, 4, 5}), never, never}},
};
// clang-format on

}  // namespace

std::span<const RuntimeSource> runtime_model_sources() {
  return kSources;
}

std::span<const RuntimeModel> runtime_models() {
  return kModels;
}

}  // namespace fp8kv
