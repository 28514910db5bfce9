#include "scales/rules/tables/family.h"

#include <array>

namespace fp8kv {
namespace {

struct NamedFamily {
  Family family;
  const char* name;
};

constexpr std::array<NamedFamily, kFamilyCount> kFamilyNames = {{
    {Family::other, "other"},
    {Family::llama_mistral, "llama_mistral"},
    {Family::qwen2, "qwen2"},
    {Family::qwen2_moe, "qwen2_moe"},
    {Family::qwen3, "qwen3"},
    {Family::qwen3_moe, "qwen3_moe"},
    {Family::qwen3_5, "qwen3_5"},
    {Family::qwen3_next, "qwen3_next"},
    {Family::gpt_oss, "gpt_oss"},
    {Family::gemma3, "gemma3"},
    {Family::gemma4, "gemma4"},
    {Family::mixtral, "mixtral"},
    {Family::phi3, "phi3"},
    {Family::glm4_moe, "glm4_moe"},
    {Family::nemotron_h, "nemotron_h"},
    {Family::granite, "granite"},
    {Family::granite_hybrid, "granite_hybrid"},
    {Family::deepseek, "deepseek"},
    {Family::glm4_moe_lite, "glm4_moe_lite"},
    {Family::deepseek_sparse, "deepseek_sparse"},
    {Family::deepseek_v4, "deepseek_v4"},
    {Family::glm5_next, "glm5_next"},
    {Family::gpt2, "gpt2"},
    {Family::gpt_bigcode, "gpt_bigcode"},
    {Family::gpt_neox, "gpt_neox"},
    {Family::falcon, "falcon"},
    {Family::internlm2, "internlm2"},
    {Family::baichuan, "baichuan"},
    {Family::bamba, "bamba"},
    {Family::jamba, "jamba"},
    {Family::minimax_01, "minimax_01"},
    {Family::zamba2, "zamba2"},
    {Family::falcon_h1, "falcon_h1"},
    {Family::minicpm3, "minicpm3"},
    {Family::mimo_v2, "mimo_v2"},
    {Family::minimax_m3, "minimax_m3"},
    {Family::step, "step"},
    {Family::muse_glimmer, "muse_glimmer"},
    {Family::muse_spark, "muse_spark"},
    {Family::olmo_hybrid, "olmo_hybrid"},
    {Family::kimi_linear, "kimi_linear"},
    {Family::ling3, "ling3"},
    {Family::kimi_k3, "kimi_k3"},
    {Family::ling2, "ling2"},
    {Family::longcat, "longcat"},
    {Family::qwen4_exp, "qwen4_exp"},
    {Family::inkling, "inkling"},
    {Family::drafter, "drafter"},
}};

constexpr bool families_in_order() {
  for (size_t i = 0; i < kFamilyNames.size(); ++i) {
    if (kFamilyNames[i].family != static_cast<Family>(i)) return false;
  }
  return true;
}
static_assert(families_in_order(), "every Family has a name, in the order of the enumerators");

}  // namespace

const char* family_name(Family family) {
  return kFamilyNames[static_cast<size_t>(family)].name;
}

std::vector<std::string> FamilySet::names() const {
  std::vector<std::string> names;
  for (const NamedFamily& each : kFamilyNames) {
    if (has(each.family)) names.push_back(each.name);
  }
  return names;
}

}  // namespace fp8kv
