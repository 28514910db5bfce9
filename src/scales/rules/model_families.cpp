#include "scales/rules/model_families.h"

namespace fp8kv {
namespace {

using Names = PortableNames;

constexpr ModelFamily kFamilies[] = {
    {"llama", Family::llama_mistral, Names::both},
    {"mistral", Family::llama_mistral, Names::both},
    {"qwen2", Family::qwen2, Names::both},
    {"qwen2_moe", Family::qwen2_moe, Names::parameters},
    {"qwen3", Family::qwen3, Names::both},
    {"qwen3_moe", Family::qwen3_moe, Names::both},
    {"qwen3_5", Family::qwen3_5, Names::both},
    {"qwen3_5_text", Family::qwen3_5, Names::both},
    {"qwen3_next", Family::qwen3_next, Names::projections},
    {"gpt_oss", Family::gpt_oss, Names::both},
    {"gemma3", Family::gemma3, Names::both},
    {"gemma3_text", Family::gemma3, Names::both},
    {"gemma4_text", Family::gemma4, Names::both},
    {"mixtral", Family::mixtral, Names::both},
    {"phi3", Family::phi3, Names::both},
    {"glm4_moe", Family::glm4_moe, Names::both},
    {"nemotron_h", Family::nemotron_h, Names::both},
    {"granite", Family::granite, Names::parameters},
    {"granitemoehybrid", Family::granite_hybrid, Names::parameters},
    {"deepseek_v2", Family::deepseek, Names::projections},
    {"deepseek_v3", Family::deepseek, Names::projections},
    // Kimi uses DeepSeek's attention, in the same class of every runtime.
    {"kimi_k2", Family::deepseek, Names::projections},
    {"kimi_k25", Family::deepseek, Names::projections},
    {"glm4_moe_lite", Family::glm4_moe_lite, Names::projections},
    {"youtu", Family::deepseek, Names::projections},
    {"mistral4", Family::deepseek, Names::projections},
    {"sarvam_mla", Family::deepseek, Names::projections},
    {"axk1", Family::deepseek, Names::projections},
    {"deepseek_v32", Family::deepseek_sparse, Names::projections},
    {"glm_moe_dsa", Family::deepseek_sparse, Names::projections},
    {"hy_v4", Family::deepseek_sparse, Names::projections},
    {"hy_v4_vl", Family::deepseek_sparse, Names::projections},
    {"deepseek_v4", Family::deepseek_v4, Names::projections},
    {"glm5_next", Family::glm5_next, Names::projections},
    {"gpt2", Family::gpt2, Names::parameters, true},
    {"gpt_bigcode", Family::gpt_bigcode, Names::parameters, true},
    {"gpt_neox", Family::gpt_neox, Names::parameters, true},
    {"falcon", Family::falcon, Names::parameters, true},
    {"internlm2", Family::internlm2, Names::parameters, true},
    {"baichuan", Family::baichuan, Names::parameters, true},
    {"bamba", Family::bamba, Names::both},
    {"jamba", Family::jamba, Names::both},
    {"zamba2", Family::zamba2, Names::both},
    {"minimax", Family::minimax_01, Names::both},
    {"minimax_text_01", Family::minimax_01, Names::both},
    {"MiniMaxText01", Family::minimax_01, Names::both},
    {"minimax_m1", Family::minimax_01, Names::both},
    {"MiniMaxM1", Family::minimax_01, Names::both},
    {"falcon_h1", Family::falcon_h1, Names::both},
    {"minicpm3", Family::minicpm3, Names::projections},
    {"mimo", Family::qwen2, Names::both},
    {"mimo_v2", Family::mimo_v2, Names::both},
    {"mimo_v2_flash", Family::mimo_v2, Names::both},
    {"minimax_m3_vl", Family::minimax_m3, Names::both},
    {"muse_glimmer", Family::muse_glimmer, Names::both},
    {"muse_spark", Family::muse_spark, Names::both},
    {"olmo_hybrid", Family::olmo_hybrid, Names::both},
    {"kimi_linear", Family::kimi_linear, Names::projections},
    {"kimi_k3", Family::kimi_k3, Names::projections},
    {"bailing_hybrid", Family::ling3, Names::projections},
    {"bailing_moe", Family::ling2, Names::both},
    {"bailing_moe_v2", Family::ling2, Names::both},
    {"sarvam_moe", Family::ling2, Names::both},
    {"longcat_flash", Family::longcat, Names::projections},
    {"qwen4_exp", Family::qwen4_exp, Names::both},
    {"qwen4_exp_text", Family::qwen4_exp, Names::both},
    {"inkling_mm_model", Family::inkling, Names::apart},
    {"inkling_model", Family::inkling, Names::apart},
    {"inkling_text", Family::inkling, Names::apart},
    {"step3p5", Family::step, Names::both},
    {"step3p7", Family::step, Names::both},
};

}  // namespace

std::span<const ModelFamily> model_families() {
  return kFamilies;
}

const ModelFamily* find_family(std::string_view model_type) {
  for (const ModelFamily& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

PortableNames portable_names(std::string_view model_type) {
  const ModelFamily* family = find_family(model_type);
  return family ? family->names : PortableNames::both;
}

}  // namespace fp8kv
